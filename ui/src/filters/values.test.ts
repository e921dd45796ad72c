import { expect, test } from 'vitest'
import { check, escaped } from './values'

test('values are sent in one form', () => {
  expect(check('cpu', ' 39, 0-2,1 ')).toEqual({ value: '0-2,39' })
  expect(check('pid', '812, 4021')).toEqual({ value: '812,4021' })
  expect(check('comm', ' kubelet ')).toEqual({ value: 'kubelet' })
  expect(check('mode', 'kernel')).toEqual({ value: 'kernel' })
})

test.each([
  ['cpu', 'five'],
  ['pid', '12;rm'],
  ['mode', 'both'],
  ['comm', '  '],
] as const)('%s %j is refused in words', (name, text) => {
  expect(check(name, text)).toHaveProperty('problem')
})

test('a name as a pattern means itself', () => {
  const name = 'operator()<a*>::{lambda(int)#1}[b]^$|?+\\.'
  expect(new RegExp(`^${escaped(name)}$`).test(name)).toBe(true)
})
