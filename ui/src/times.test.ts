import { describe, expect, test } from 'vitest'
import {
  digitsFor,
  formatClock,
  formatDate,
  formatLength,
  formatTime,
  parseTime,
  ticks,
} from './times'

const AT = Date.UTC(2026, 2, 1, 12, 30, 5) + 250.125

describe('times as text', () => {
  test('in UTC, with the fraction asked for', () => {
    expect(formatTime(AT, 'utc')).toBe('2026-03-01 12:30:05 UTC')
    expect(formatClock(AT, 'utc', 3)).toBe('12:30:05.250')
    expect(formatClock(AT, 'utc', 6)).toBe('12:30:05.250125')
  })

  test('a clock is cut, not rounded', () => {
    expect(formatClock(Date.UTC(2026, 2, 1, 23, 59, 59, 999), 'utc')).toBe('23:59:59')
  })

  test('in the zone of the browser', () => {
    const local = new Date(2026, 6, 1, 8, 5, 9)
    expect(formatTime(local.getTime(), 'local')).toMatch(/^2026-07-01 08:05:09 [+-]\d\d:\d\d$/)
    expect(formatDate(local.getTime(), 'local')).toBe('2026-07-01')
  })

  test.each([
    [0.25, '250 µs'],
    [2.5, '2.5 ms'],
    [250, '250 ms'],
    [12_500, '12.5 s'],
    [120_000, '2 min'],
    [125_000, '2 min 5 s'],
    [7_500_000, '2 h 5 min'],
    [90_000_000, '1 d 1 h'],
  ])('%d ms is %s', (length, text) => {
    expect(formatLength(length)).toBe(text)
  })

  test('digits by what a pixel is', () => {
    expect([30_000, 20, 0.01].map(digitsFor)).toEqual([0, 3, 6])
  })
})

describe('ticks', () => {
  test('are round, in order, and not too near', () => {
    const range = { from: AT, to: AT + 12 * 3_600_000 }
    const found = ticks(range, 1400, 'utc')
    expect(found.map((tick) => tick.label)).toContain('2026-03-02')
    expect(found[0]?.label).toBe('13:00')
    const nearest = Math.min(
      ...found.slice(1).map((tick, at) => tick.time - (found[at]?.time ?? 0)),
    )
    expect((nearest / (range.to - range.from)) * 1400).toBeGreaterThanOrEqual(96)
  })

  test('of milliseconds show them', () => {
    const found = ticks({ from: AT, to: AT + 10 }, 1000, 'utc')
    expect(found[0]?.label).toBe('12:30:05.251')
    expect(found).toHaveLength(10)
  })

  test('of centuries are few', () => {
    const found = ticks({ from: 0, to: 9.2e12 }, 1000, 'utc')
    expect(found.length).toBeGreaterThan(2)
    expect(found.length).toBeLessThanOrEqual(11)
  })

  test('of nothing are none', () => {
    expect(ticks({ from: 5, to: 5 }, 1000, 'utc')).toEqual([])
    expect(ticks({ from: 5, to: 9 }, 0, 'utc')).toEqual([])
  })
})

describe('typed times', () => {
  test.each([
    ['2026-03-01 12:30:05.250125', AT],
    ['2026-03-01T12:30:05.250125Z', AT],
    ['2026-03-01T13:30:05.250125+01:00', AT],
    ['12:30:05', AT - 250.125],
    ['12:30', AT - 5250.125],
    ['2026-03-01', Date.UTC(2026, 2, 1)],
    ['+30s', AT + 30_000],
    ['-2min', AT - 120_000],
    ['+1.5h', AT + 5_400_000],
  ])('%s', (text, time) => {
    expect(parseTime(text, 'utc', AT)).toBeCloseTo(time, 3)
  })

  test('in the zone of the browser', () => {
    const local = new Date(2026, 6, 1, 8, 5, 9).getTime()
    expect(parseTime('2026-07-01 08:05:09', 'local', AT)).toBe(local)
    expect(parseTime('08:05:09', 'local', local + 1000)).toBe(local)
  })

  test.each(['', 'yesterday', '25:00', '12:61', '2026-02-31', '12', '1e9'])(
    '%j is none',
    (text) => {
      expect(parseTime(text, 'utc', AT)).toBeNull()
    },
  )

  test('what is shown can be typed', () => {
    expect(parseTime(formatTime(AT, 'utc', 6), 'utc', 0)).toBeCloseTo(AT, 2)
  })
})
