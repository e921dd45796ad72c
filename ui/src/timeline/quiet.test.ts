import { expect, test } from 'vitest'
import { isQuiet } from './quiet'

test('a pile that stays as it is, is quiet; one that grows is not', () => {
  expect(
    isQuiet(
      [
        [4206, null, 4207],
        [36, 36, 36],
      ],
      'cgroups',
    ),
  ).toBe(true)
  expect(
    isQuiet(
      [
        [4206, 4207],
        [36, 60],
      ],
      'cgroups',
    ),
  ).toBe(false)
  expect(isQuiet([[0, 0, 1]], 'cgroups')).toBe(false)
})

test('shares of time are quiet while they are small, however they change', () => {
  expect(
    isQuiet(
      [
        [0, 0.04],
        [0, 0],
      ],
      'share of time',
    ),
  ).toBe(true)
  expect(
    isQuiet(
      [
        [0, 0.04],
        [0, 0.46],
      ],
      'share of time',
    ),
  ).toBe(false)
})

test('what was not recorded is quiet', () => {
  expect(isQuiet([[null, null]], 'cgroups')).toBe(true)
})
