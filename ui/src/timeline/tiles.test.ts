import { describe, expect, test } from 'vitest'
import { best, MOST_COLUMNS, suits, wantedFor, type Tile } from './tiles'

const bounds = { from: 0, to: 100_000 }
const tile = (from: number, to: number, columnMs: number): Tile<string> => ({
  range: { from, to },
  columnMs,
  data: '',
})

describe('the piece to fetch', () => {
  test('has half a view at either side, a column for each pixel', () => {
    const wanted = wantedFor({ from: 40_000, to: 50_000 }, 1000, bounds, 0)
    expect(wanted).toEqual({ range: { from: 35_000, to: 55_000 }, columns: 2000 })
  })

  test('ends where the recording ends', () => {
    const wanted = wantedFor({ from: 95_000, to: 105_000 }, 1000, bounds, 0)
    expect(wanted).toEqual({ range: { from: 90_000, to: 100_000 }, columns: 1000 })
  })

  test('has no more columns than an answer may', () => {
    expect(wantedFor({ from: 40_000, to: 50_000 }, 5000, bounds, 0)?.columns).toBe(MOST_COLUMNS)
  })

  test('asks for nothing finer than there is, however close the look', () => {
    const wanted = wantedFor({ from: 50_000, to: 50_010 }, 1000, bounds, 1000)
    expect(wanted).toEqual({ range: { from: 20_000, to: 80_010 }, columns: 61 })
  })

  test('is none outside, and none without a place to draw', () => {
    expect(wantedFor({ from: 200_000, to: 300_000 }, 1000, bounds, 0)).toBeNull()
    expect(wantedFor(bounds, 0, bounds, 0)).toBeNull()
  })
})

describe('what is there', () => {
  const view = { from: 40_000, to: 50_000 }

  test('suits when it covers the view about as finely', () => {
    expect(suits(tile(35_000, 55_000, 10), view, 1000, bounds, 0)).toBe(true)
    expect(suits(tile(35_000, 55_000, 20), view, 1000, bounds, 0)).toBe(false)
    expect(suits(tile(35_000, 49_000, 10), view, 1000, bounds, 0)).toBe(false)
  })

  test('too fine does not suit: a pixel would miss a peak', () => {
    expect(suits(tile(35_000, 55_000, 2), view, 1000, bounds, 0)).toBe(false)
  })

  test('what cannot be finer suits however close the look', () => {
    expect(suits(tile(0, 100_000, 1000), view, 1000, bounds, 1000)).toBe(true)
  })

  test('what the server had read only in part is asked for again', () => {
    expect(suits({ ...tile(35_000, 55_000, 10), partial: true }, view, 1000, bounds, 0)).toBe(false)
  })

  test('a recording that grew makes its last piece too short', () => {
    const end = { from: 90_000, to: 101_000 }
    expect(suits(tile(85_000, 100_000, 10), end, 1000, bounds, 0)).toBe(true)
    expect(suits(tile(85_000, 100_000, 10), end, 1000, { from: 0, to: 101_000 }, 0)).toBe(false)
  })

  test('the best is the one that shows most, then the nearest resolution', () => {
    const overview = tile(0, 100_000, 100)
    const fitting = tile(35_000, 55_000, 10)
    expect(best([overview, fitting], view, 1000)).toBe(fitting)
    expect(best([overview, fitting], { from: 10_000, to: 20_000 }, 1000)).toBe(overview)
    expect(best([overview, fitting], bounds, 1000)).toBe(overview)
    expect(best([], view, 1000)).toBeNull()
  })
})
