import { expect, test } from 'vitest'
import { columnAt, highestByColumn, hottest, NO_DATA, peakAt, type Cores } from './shares'
import type { Tile } from './tiles'

// core 39 was pegged in two columns, core 3 in one; core 0 slept
const cores: Cores = {
  columns: 4,
  cpus: [0, 3, 39],
  peak: Uint8Array.from([5, NO_DATA, 5, 5, 10, 254, 10, 10, 254, NO_DATA, 250, 20]),
  average: [],
}
const tile: Tile<Cores> = { range: { from: 1000, to: 5000 }, columnMs: 1000, data: cores }

test('the column of a time', () => {
  expect([999, 1000, 1999, 4999, 5000].map((time) => columnAt(tile, time))).toEqual([
    -1, 0, 0, 3, -1,
  ])
})

test('the peak of a line of cores; nothing known is not zero', () => {
  expect(peakAt(cores, [0, 2], 0)).toBe(1)
  expect(peakAt(cores, [0, 2], 1)).toBeNull()
  expect(peakAt(cores, [], 1)).toBeNull()
})

test('the hottest cores, those pegged longest first, in the range alone', () => {
  expect(hottest(tile, tile.range, 240, 2).map((hot) => [hot.cpu, hot.columns])).toEqual([
    [39, 2],
    [3, 1],
  ])
  expect(hottest(tile, { from: 4000, to: 5000 }, 240, 1)).toEqual([
    { cpu: 39, row: 2, peak: 20, columns: 0, first: -1 },
  ])
})

test('the busiest core by column', () => {
  expect(highestByColumn(cores).map((value) => value && Math.round(value * 254))).toEqual([
    254, 254, 250, 20,
  ])
  expect(highestByColumn({ ...cores, peak: new Uint8Array(12).fill(NO_DATA) })).toEqual([
    null,
    null,
    null,
    null,
  ])
})
