/**
 * The strip of the cores as an image: one line for each core, or for several
 * where there are more cores than the strip has pixels; one pixel wide for each
 * column of the matrix, its colour the peak share in it.
 */
import { isLow } from '../screen'
import { NO_DATA, type Cores } from './shares'

/** What one line of the strip is: its cores, as rows of the matrix. */
export type Line = { cpus: number[]; rows: number[] }

const TALLEST = 256

/** Lines for the cores to show, those alone that a filter names. */
export function linesOf(cpus: number[], only: ReadonlySet<number> | null): Line[] {
  const shown = cpus
    .map((cpu, row) => ({ cpu, row }))
    .filter(({ cpu }) => only === null || only.has(cpu))
  const each = Math.max(1, Math.ceil(shown.length / TALLEST))
  const lines: Line[] = []
  for (let at = 0; at < shown.length; at += each) {
    const part = shown.slice(at, at + each)
    lines.push({ cpus: part.map(({ cpu }) => cpu), rows: part.map(({ row }) => row) })
  }
  return lines
}

/** Height of a line in pixels: few cores are easy to read, many still fit. */
export function lineHeight(lines: number): number {
  if (lines <= 1) return 44
  if (lines <= 2) return 30
  if (lines <= 4) return 22
  if (lines <= 8) return 14
  if (lines <= 16) return 9
  if (lines <= 32) return 6
  if (lines <= 64) return isLow() ? 2 : 3
  return lines <= 128 && !isLow() ? 2 : 1
}

/** From here on a core counts as pegged: nearly all of a second. */
export const PEGGED = Math.round(0.95 * 254)

/**
 * Colours of the image, as 32-bit pixels. A pegged cell also takes the column
 * at either side where `spread` (a second is a hair's breadth in 12 hours, and
 * one pegged second of one core is what is looked for).
 */
export function paint(
  cores: Cores,
  lines: Line[],
  ramp: Uint32Array,
  spread: boolean,
): Uint32Array<ArrayBuffer> {
  const { columns, peak } = cores
  const image = new Uint32Array(columns * lines.length)
  lines.forEach(({ rows }, at) => {
    const values =
      rows.length === 1 ? row(peak, rows[0] ?? 0, columns) : highest(peak, rows, columns)
    const line = image.subarray(at * columns, (at + 1) * columns)
    for (let column = 0; column < columns; column++)
      line[column] = ramp[values[column] ?? NO_DATA] ?? 0
    if (spread) widen(values, line)
  })
  return image
}

/** Neighbouring columns in which a line was pegged: `from` included, `to` not. */
export type Run = { line: number; from: number; to: number }

/** Where lines were pegged; no more than `most` are looked for. */
export function peggedRuns(cores: Cores, lines: Line[], most: number): Run[] {
  const { columns, peak } = cores
  const found: Run[] = []
  for (let line = 0; line < lines.length && found.length < most; line++) {
    const values = highest(peak, lines[line]?.rows ?? [], columns)
    let from = -1
    for (let column = 0; column <= columns; column++) {
      const value = column < columns ? (values[column] ?? NO_DATA) : NO_DATA
      const hot = value >= PEGGED && value !== NO_DATA
      if (hot && from < 0) from = column
      if (!hot && from >= 0) {
        found.push({ line, from, to: column })
        from = -1
      }
    }
  }
  return found.slice(0, most)
}

const row = (peak: Uint8Array, at: number, columns: number): Uint8Array =>
  peak.subarray(at * columns, (at + 1) * columns)

function highest(peak: Uint8Array, rows: number[], columns: number): Uint8Array {
  const found = new Uint8Array(columns).fill(NO_DATA)
  for (const at of rows) {
    const values = row(peak, at, columns)
    for (let column = 0; column < columns; column++) {
      const value = values[column] ?? NO_DATA
      const old = found[column] ?? NO_DATA
      if (value !== NO_DATA && (old === NO_DATA || value > old)) found[column] = value
    }
  }
  return found
}

function widen(values: Uint8Array, line: Uint32Array): void {
  for (let column = 0; column < values.length; column++) {
    const value = values[column] ?? NO_DATA
    if (value < PEGGED || value === NO_DATA) continue
    const colour = line[column] ?? 0
    if (column > 0 && (values[column - 1] ?? 0) < PEGGED) line[column - 1] = colour
    if (column + 1 < values.length && (values[column + 1] ?? 0) < PEGGED) line[column + 1] = colour
  }
}

type Stop = [part: number, red: number, green: number, blue: number]

// lightness rises (dark) or falls (light) all the way, so the order is seen
// without telling hues apart; the last tenth is far from all the rest
const DARK: Stop[] = [
  [0, 0x0f, 0x15, 0x1d],
  [0.1, 0x16, 0x22, 0x33],
  [0.35, 0x1f, 0x3d, 0x61],
  [0.6, 0x3b, 0x6a, 0x96],
  [0.8, 0xc9, 0x7a, 0x2b],
  [0.95, 0xff, 0xb2, 0x4d],
  [1, 0xff, 0xe3, 0xa0],
]
const LIGHT: Stop[] = [
  [0, 0xf8, 0xf9, 0xfb],
  [0.1, 0xea, 0xf0, 0xf7],
  [0.35, 0xc3, 0xd6, 0xea],
  [0.6, 0x8f, 0xb3, 0xd9],
  [0.8, 0xd0, 0x83, 0x30],
  [0.95, 0xb4, 0x35, 0x10],
  [1, 0x8a, 0x12, 0x0a],
]

/** The colour of each of the 256 values; what is not known is transparent. */
export function rampOf(dark: boolean): Uint32Array {
  const ramp = new Uint32Array(256)
  const stops = dark ? DARK : LIGHT
  for (let value = 0; value < NO_DATA; value++) ramp[value] = mix(stops, value / 254)
  return ramp
}

function mix(stops: Stop[], part: number): number {
  const after = Math.max(
    1,
    stops.findIndex((stop) => stop[0] >= part),
  )
  const low = stops[after - 1] as Stop
  const high = stops[after] as Stop
  const share = (part - low[0]) / (high[0] - low[0])
  const channel = (at: 1 | 2 | 3) => Math.round(low[at] + (high[at] - low[at]) * share)
  return (0xff000000 | (channel(3) << 16) | (channel(2) << 8) | channel(1)) >>> 0
}

/** The ramp as a CSS gradient, for the legend. */
export function gradientOf(dark: boolean): string {
  const stops = (dark ? DARK : LIGHT).map(
    ([part, ...rgb]) => `rgb(${rgb.join(' ')}) ${part * 100}%`,
  )
  return `linear-gradient(to right, ${stops.join(', ')})`
}
