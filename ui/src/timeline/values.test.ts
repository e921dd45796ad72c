import { expect, test } from 'vitest'
import { formatValue, sayValue } from './values'

test.each([
  [68_680, 'cgroups', '68,680'],
  [1_234_567, 'cgroups', '1.23 M'],
  [0.0642, 'share of time', '6.4 %'],
  [1, 'share of time', '100 %'],
  [0, 'share of time', '0 %'],
  [3.1 * 2 ** 30, 'bytes', '3.1 GiB'],
  [2048, 'bytes per second', '2 KiB/s'],
  [12.34, 'ms', '12.3 ms'],
  [5, 'per second', '5/s'],
  [null, 'bytes', '–'],
  [NaN, 'bytes', '–'],
])('%s %s is %s', (value, unit, text) => {
  expect(formatValue(value, unit)).toBe(text)
})

test('names a peak: the peaks of several processes are of different times', () => {
  expect(sayValue(1.5, 'cores', true)).toMatch(/^peak .* cores$/)
  expect(sayValue(1.5, 'cores', false)).not.toContain('peak')
  expect(sayValue(null, 'cores', true)).not.toContain('peak')
})
