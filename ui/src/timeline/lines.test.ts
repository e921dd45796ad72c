import { expect, test } from 'vitest'
import { lineHeight, linesOf, paint, PEGGED, peggedRuns, rampOf } from './lines'

const ramp = rampOf(true)
const cores = (peak: number[], cpus: number[], columns: number) => ({
  columns,
  cpus,
  peak: Uint8Array.from(peak),
  average: [],
})

test('a line for each core, or those of the filter', () => {
  expect(linesOf([0, 1, 39], null).map((line) => line.cpus)).toEqual([[0], [1], [39]])
  expect(linesOf([0, 1, 39], new Set([39, 77]))).toEqual([{ cpus: [39], rows: [2] }])
  expect(linesOf([0], new Set())).toEqual([])
})

test('more cores than pixels share lines, none is left out', () => {
  const cpus = Array.from({ length: 600 }, (_, cpu) => cpu)
  const lines = linesOf(cpus, null)
  expect(lines.length).toBeLessThanOrEqual(256)
  expect(lines.flatMap((line) => line.cpus)).toEqual(cpus)
})

test('every count of lines has a height that fits', () => {
  for (let lines = 1; lines <= 256; lines++) {
    expect(lineHeight(lines) * lines).toBeLessThanOrEqual(256)
    expect(lineHeight(lines)).toBeGreaterThanOrEqual(1)
  }
})

test('a line of several cores shows the highest', () => {
  const image = paint(
    cores([3, 255, 255, 200, 9, 255], [0, 1], 3),
    [{ cpus: [0, 1], rows: [0, 1] }],
    ramp,
    false,
  )
  expect([...image]).toEqual([ramp[200], ramp[9], 0])
})

test('a pegged second is three columns wide and hides no other', () => {
  const image = paint(cores([0, 0, 254, 0, PEGGED, 254], [0], 6), linesOf([0], null), ramp, true)
  expect([...image]).toEqual([ramp[0], ramp[254], ramp[254], ramp[PEGGED], ramp[PEGGED], ramp[254]])
})

test.each([true, false])('lightness is in order (dark: %s)', (dark) => {
  const colours = rampOf(dark)
  const lightness = Array.from({ length: 255 }, (_, value) => {
    const pixel = colours[value] ?? 0
    return 0.21 * (pixel & 255) + 0.72 * ((pixel >> 8) & 255) + 0.07 * ((pixel >> 16) & 255)
  })
  const sign = dark ? 1 : -1
  for (let at = 1; at < 255; at++) {
    expect(sign * ((lightness[at] ?? 0) - (lightness[at - 1] ?? 0))).toBeGreaterThan(-1.5)
  }
  expect(colours[255]).toBe(0)
})

test('runs of pegged columns, as many as asked for', () => {
  const hot = cores([254, 254, 0, 255, 250, 0, 0, 0], [0, 1], 4)
  const lines = linesOf([0, 1], null)
  expect(peggedRuns(hot, lines, 9)).toEqual([
    { line: 0, from: 0, to: 2 },
    { line: 1, from: 0, to: 1 },
  ])
  expect(peggedRuns(hot, lines, 1)).toHaveLength(1)
})
