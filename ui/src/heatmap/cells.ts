/**
 * Arithmetic of the heatmap: columns are seconds (or longer), rows are parts of one, the
 * start of a second at the bottom. Time runs up each column and then to the next, so a
 * range of time is a range of cells.
 */

import type { Range } from '../range'

export interface Grid {
  from: number
  column_ms: number
  columns: number
  rows: number
}

export interface Cell {
  column: number
  row: number
}

/** A part of the picture, in cells; `top` counts from the top. */
export interface Patch {
  column: number
  columns: number
  top: number
  rows: number
}

export const rowMs = (grid: Grid): number => grid.column_ms / grid.rows

/** The range of time of one cell. */
export function cellRange(grid: Grid, { column, row }: Cell): Range {
  const from = grid.from + column * grid.column_ms + row * rowMs(grid)
  return { from, to: from + rowMs(grid) }
}

/** Where a cell's numbers stand in the matrix. */
export const placeOf = (grid: Grid, { column, row }: Cell): number => column * grid.rows + row

/** The cell at a place of a picture `width` × `height` large; the nearest if it is outside. */
export function cellAt(grid: Grid, x: number, y: number, width: number, height: number): Cell {
  return {
    column: clamp(Math.floor((x / width) * grid.columns), 0, grid.columns - 1),
    row: clamp(Math.floor((1 - y / height) * grid.rows), 0, grid.rows - 1),
  }
}

/** From the earlier of two cells to the end of the later, both included. */
export function between(grid: Grid, one: Cell, other: Cell): Range {
  const first = placeOf(grid, one) <= placeOf(grid, other) ? one : other
  return { from: cellRange(grid, first).from, to: cellRange(grid, first === one ? other : one).to }
}

/** The cell of a moment; the nearest if it is outside. */
export function cellOf(grid: Grid, time: number): Cell {
  const inside = clamp(time - grid.from, 0, grid.columns * grid.column_ms - rowMs(grid) / 2)
  // A range's edge lies on a cell's edge, or as near as a double can tell.
  const place = Math.floor(inside / rowMs(grid) + 1e-3)
  return { column: Math.floor(place / grid.rows), row: place % grid.rows }
}

/** One step by keys; up is later within the second, right is the next second. */
export function move(grid: Grid, cell: Cell, columns: number, rows: number): Cell {
  const places = grid.columns * grid.rows
  const place = clamp(placeOf(grid, cell) + columns * grid.rows + rows, 0, places - 1)
  return { column: Math.floor(place / grid.rows), row: place % grid.rows }
}

/** The up to three rectangles that a range of time covers; none if it lies outside. */
export function patches(grid: Grid, range: Range): Patch[] {
  const end = grid.from + grid.columns * grid.column_ms
  if (range.to <= grid.from || range.from >= end || range.to <= range.from) return []
  const start = cellOf(grid, range.from)
  const last = cellOf(grid, range.to - rowMs(grid) / 2)
  if (start.column === last.column) return [patch(grid, start.column, 1, start.row, last.row)]
  const found = [patch(grid, start.column, 1, start.row, grid.rows - 1)]
  const middle = last.column - start.column - 1
  if (middle > 0) found.push(patch(grid, start.column + 1, middle, 0, grid.rows - 1))
  found.push(patch(grid, last.column, 1, 0, last.row))
  return found
}

function patch(grid: Grid, column: number, columns: number, from: number, to: number): Patch {
  return { column, columns, top: grid.rows - 1 - to, rows: to - from + 1 }
}

export interface Tally {
  samples: number
  kernel: number
  /** where most of them are; null if there are none */
  most: Cell | null
}

/** Sum up the cells of a range of time: their samples, the kernel's, the fullest cell. */
export function tally(
  grid: Grid,
  range: Range,
  counts: ArrayLike<number>,
  kernel?: ArrayLike<number>,
): Tally {
  const sum: Tally = { samples: 0, kernel: 0, most: null }
  if (patches(grid, range).length === 0) return sum
  const last = placeOf(grid, cellOf(grid, range.to - rowMs(grid) / 2))
  let highest = 0
  for (let at = placeOf(grid, cellOf(grid, range.from)); at <= last; at += 1) {
    const here = counts[at] ?? 0
    sum.samples += here
    sum.kernel += kernel?.[at] ?? 0
    if (here > highest) {
      highest = here
      sum.most = { column: Math.floor(at / grid.rows), row: at % grid.rows }
    }
  }
  return sum
}

/** Whether a range starts and ends with a cell: else the counts of its cells are not quite its. */
export function onEdges(grid: Grid, { from, to }: Range): boolean {
  const away = (time: number) => {
    const cells = (time - grid.from) / rowMs(grid)
    return Math.abs(cells - Math.round(cells))
  }
  return away(from) < 0.01 && away(to) < 0.01
}

const SHORTEST_MS = 60_000
export const LONGEST_MS = 3_600_000

/**
 * What the heatmap shows for a selection: the selection, or if it is short a minute around
 * it, so that it is seen among its neighbours. A selection inside of what is shown already
 * moves nothing: it was most likely made there.
 */
export function windowFor(shown: Range | null, selection: Range, whole: Range): Range {
  const length = selection.to - selection.from
  const inside = shown && selection.from >= shown.from && selection.to <= shown.to
  if (inside && shown.to - shown.from <= Math.max(length, LONGEST_MS)) return shown
  if (length >= SHORTEST_MS) return onSeconds(selection, whole)
  const middle = (selection.from + selection.to) / 2
  const from = clamp(
    middle - SHORTEST_MS / 2,
    whole.from,
    Math.max(whole.from, whole.to - SHORTEST_MS),
  )
  return onSeconds({ from, to: Math.min(from + SHORTEST_MS, whole.to) }, whole)
}

function onSeconds(range: Range, whole: Range): Range {
  return {
    from: Math.max(Math.floor(range.from / 1000) * 1000, Math.floor(whole.from / 1000) * 1000),
    to: Math.max(Math.min(Math.ceil(range.to / 1000) * 1000, whole.to), range.to),
  }
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}
