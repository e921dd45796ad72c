/** What is read from a piece of the cores' shares. */
import type { Range } from '../range'
import type { Tile } from './tiles'

/** A value of `peak` where nothing was recorded; others are 0 to 254. */
export const NO_DATA = 255

export type Cores = {
  columns: number
  cpus: number[]
  /** cpus × columns: the highest share of any second in the column */
  peak: Uint8Array
  /** by column, the mean of all cores as a part of one; null where not known */
  average: (number | null)[]
}

/** The column a time is in, or -1. */
export function columnAt(tile: Tile<Cores>, time: number): number {
  const column = Math.floor((time - tile.range.from) / tile.columnMs)
  return column >= 0 && column < tile.data.columns ? column : -1
}

/** The peak share of some rows in a column, or null where nothing is known. */
export function peakAt(cores: Cores, rows: number[], column: number): number | null {
  let found: number | null = null
  for (const row of rows) {
    const value = cores.peak[row * cores.columns + column] ?? NO_DATA
    if (value !== NO_DATA && value / 254 > (found ?? -1)) found = value / 254
  }
  return found
}

export type Hot = { cpu: number; row: number; peak: number; columns: number; first: number }

/** The cores with the highest peaks in a range, those that were pegged longest first. */
export function hottest(tile: Tile<Cores>, range: Range, pegged: number, most: number): Hot[] {
  const { cpus, columns, peak } = tile.data
  const first = Math.max(0, Math.floor((range.from - tile.range.from) / tile.columnMs))
  const last = Math.min(columns, Math.ceil((range.to - tile.range.from) / tile.columnMs))
  const found = cpus.map((cpu, row) => {
    const hot: Hot = { cpu, row, peak: 0, columns: 0, first: -1 }
    for (let column = first; column < last; column++) {
      const value = peak[row * columns + column] ?? NO_DATA
      if (value === NO_DATA) continue
      if (value >= pegged) {
        hot.columns += 1
        if (hot.first < 0) hot.first = column
      }
      if (value > hot.peak) hot.peak = value
    }
    return hot
  })
  found.sort((a, b) => b.columns - a.columns || b.peak - a.peak || a.cpu - b.cpu)
  return found.slice(0, most)
}

/** The highest peak of all cores, by column: what the average hides. */
export function highestByColumn({ cpus, columns, peak }: Cores): (number | null)[] {
  const found = new Int16Array(columns).fill(-1)
  for (let row = 0; row < cpus.length; row++) {
    for (let column = 0; column < columns; column++) {
      const value = peak[row * columns + column] ?? NO_DATA
      if (value !== NO_DATA && value > (found[column] ?? -1)) found[column] = value
    }
  }
  return Array.from(found, (value) => (value < 0 ? null : value / 254))
}
