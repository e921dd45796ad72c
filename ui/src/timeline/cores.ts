/** The shares of the cores: `/api/cores` as tiles. */
import type { Signal } from '@preact/signals'
import { matrix, query, type Matrix } from '../api'
import { param } from '../state'
import { NO_DATA, type Cores } from './shares'
import { Tiles, type Tile } from './tiles'

/** Which share the strip shows. */
export const STATES = [
  'system',
  'softirq',
  'kernel',
  'total',
  'user',
  'irq',
  'iowait',
  'steal',
] as const

export const coreState: Signal<string> = param('cores', 'system')

// cores are read about once a second, not on the second: a quarter of it shows where
const FINEST_MS = 250

export const coreTiles = new Tiles<Cores>(async (wanted, signal) => {
  const state = coreState.peek()
  const params = { ...query(wanted.range), state, columns: wanted.columns }
  return tileOf(await matrix('/api/cores', params, signal))
}, FINEST_MS)

function tileOf({ header, blocks }: Matrix): Tile<Cores> {
  const { from_ms: from, column_ms: columnMs, columns, rows } = header
  return {
    range: { from, to: from + columns * columnMs },
    columnMs,
    partial: header.complete === false,
    data: {
      columns,
      cpus: rows.map(Number),
      peak: blocks.peak instanceof Uint8Array ? blocks.peak : new Uint8Array(0),
      average: shares(blocks.average),
    },
  }
}

/** Shares given as bytes or as fractions. */
function shares(block: Matrix['blocks'][string] | undefined): (number | null)[] {
  if (block instanceof Uint8Array) {
    return Array.from(block, (value) => (value === NO_DATA ? null : value / 254))
  }
  return Array.from(block ?? [], (value) => (Number.isFinite(value) ? value : null))
}
