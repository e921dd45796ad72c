import { expect, test } from 'vitest'
import { formatCpus, parseCpus } from './cpus'

test('a list of cores is read and written', () => {
  expect([...(parseCpus('0-2, 39') ?? [])]).toEqual([0, 1, 2, 39])
  expect(formatCpus([39, 2, 1, 0, 1])).toBe('0-2,39')
  expect(formatCpus([])).toBe('')
})

test.each(['', 'a', '3-1', '1,,2', '-1', '1-', '999999'])('%j is no list of cores', (text) => {
  expect(parseCpus(text)).toBeNull()
})
