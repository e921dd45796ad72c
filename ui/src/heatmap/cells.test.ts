import { describe, expect, it } from 'vitest'
import {
  between,
  cellAt,
  cellOf,
  cellRange,
  move,
  onEdges,
  patches,
  tally,
  windowFor,
  type Grid,
} from './cells'

const grid: Grid = { from: 1_700_000_000_000, column_ms: 1000, columns: 60, rows: 50 }
const at = (ms: number): number => grid.from + ms

describe('cells', () => {
  it('are a row of a second', () => {
    expect(cellRange(grid, { column: 2, row: 5 })).toEqual({ from: at(2100), to: at(2120) })
  })

  it('are found by place, the start of a second at the bottom', () => {
    expect(cellAt(grid, 0, 499, 600, 500)).toEqual({ column: 0, row: 0 })
    expect(cellAt(grid, 599, 0, 600, 500)).toEqual({ column: 59, row: 49 })
    expect(cellAt(grid, -50, 9999, 600, 500)).toEqual({ column: 0, row: 0 })
  })

  it('are found by time, also on their edge', () => {
    for (let column = 0; column < 60; column += 7) {
      for (let row = 0; row < 50; row += 1) {
        expect(cellOf(grid, cellRange(grid, { column, row }).from)).toEqual({ column, row })
      }
    }
    expect(cellOf(grid, at(-5))).toEqual({ column: 0, row: 0 })
    expect(cellOf(grid, at(1e9))).toEqual({ column: 59, row: 49 })
  })

  it('make a range, whichever came first', () => {
    const one = { column: 3, row: 10 }
    const other = { column: 1, row: 40 }
    expect(between(grid, one, other)).toEqual({ from: at(1800), to: at(3220) })
    expect(between(grid, other, one)).toEqual(between(grid, one, other))
    expect(between(grid, one, one)).toEqual(cellRange(grid, one))
  })

  it('are walked in the order of time', () => {
    expect(move(grid, { column: 1, row: 49 }, 0, 1)).toEqual({ column: 2, row: 0 })
    expect(move(grid, { column: 1, row: 5 }, 1, 0)).toEqual({ column: 2, row: 5 })
    expect(move(grid, { column: 0, row: 0 }, 0, -1)).toEqual({ column: 0, row: 0 })
    expect(move(grid, { column: 59, row: 49 }, 1, 0)).toEqual({ column: 59, row: 49 })
  })
})

describe('patches', () => {
  it('are one within a second', () => {
    expect(patches(grid, { from: at(2100), to: at(2200) })).toEqual([
      { column: 2, columns: 1, top: 40, rows: 5 },
    ])
  })

  it('are three over several', () => {
    expect(patches(grid, { from: at(1800), to: at(4200) })).toEqual([
      { column: 1, columns: 1, top: 0, rows: 10 },
      { column: 2, columns: 2, top: 0, rows: 50 },
      { column: 4, columns: 1, top: 40, rows: 10 },
    ])
  })

  it('are none outside', () => {
    expect(patches(grid, { from: at(-10), to: at(0) })).toEqual([])
    expect(patches(grid, { from: at(60_000), to: at(61_000) })).toEqual([])
  })
})

describe('windowFor', () => {
  const whole = { from: at(0), to: at(600_000) }

  it('is the selection on whole seconds', () => {
    const selection = { from: at(60_500), to: at(180_200) }
    expect(windowFor(null, selection, whole)).toEqual({ from: at(60_000), to: at(181_000) })
  })

  it('is a minute around a short one, within the recording', () => {
    const selection = { from: at(100_000), to: at(104_000) }
    expect(windowFor(null, selection, whole)).toEqual({ from: at(72_000), to: at(132_000) })
    const early = { from: at(0), to: at(4_000) }
    expect(windowFor(null, early, whole)).toEqual({ from: at(0), to: at(60_000) })
  })

  it('stays while one selects in it', () => {
    const shown = { from: at(0), to: at(120_000) }
    expect(windowFor(shown, { from: at(5_000), to: at(6_000) }, whole)).toBe(shown)
    expect(windowFor(shown, { from: at(5_000), to: at(160_000) }, whole)).not.toBe(shown)
  })
})

it('a selection is summed up without what is shown around it', () => {
  const counts = new Uint16Array(grid.columns * grid.rows).fill(1)
  const kernel = new Uint16Array(counts.length)
  counts[5] = 90 // before the selection
  counts[2 * grid.rows + 7] = 9
  kernel[2 * grid.rows + 7] = 4
  expect(tally(grid, { from: at(2000), to: at(4000) }, counts, kernel)).toEqual({
    samples: 2 * grid.rows + 8,
    kernel: 4,
    most: { column: 2, row: 7 },
  })
  const outside = { from: at(-9000), to: at(-1000) }
  expect(tally(grid, outside, counts)).toEqual({ samples: 0, kernel: 0, most: null })
})

it('counts of cells are those of a range that starts and ends with one', () => {
  expect(onEdges(grid, { from: at(2000), to: at(4020) })).toBe(true)
  expect(onEdges(grid, { from: at(2000), to: at(4005) })).toBe(false)
})
