import { expect, it } from 'vitest'
import { certainty, count, exactly, factor, fit, percent, visible } from './words'

it('shows what cannot be seen', () => {
  expect(visible('<script>alert(1)</script>')).toBe('<script>alert(1)</script>')
  expect(visible('a\u001b[31m\u202eb')).toBe('a\\x1b[31m\\u202eb')
  expect(visible('x'.repeat(9999))).toHaveLength(512)
})

it('cuts names, the path of a package first', () => {
  expect(fit('short', 10)).toBe('short')
  expect(fit('k8s.io/kubernetes/pkg/kubelet.sync', 14)).toBe('kubelet.sync')
  expect(fit('mem_cgroup_nr_lru_pages', 10)).toBe('mem_cgrou…')
  expect(fit('anything', 1)).toBe('')
})

it('makes expressions that fit one name only', () => {
  for (const name of ['a.b', 'operator()<T*>', 'x[1]{2}|\\d', '^$?+', 'C:/a b#c-d&~']) {
    expect(new RegExp(exactly(name)).test(name)).toBe(true)
    expect(new RegExp(exactly(name)).test(`${name}x`)).toBe(false)
  }
  expect(new RegExp(exactly('a.b')).test('axb')).toBe(false)
})

it('reads as people write', () => {
  expect(percent(0.065)).toBe('6.5 %')
  expect(percent(0.0001)).toBe('<0.1 %')
  expect(percent(0)).toBe('0.0 %')
  expect(count(1234567)).toBe('1,234,567')
  expect(count(0.44)).toBe('0.4')
  expect(factor(93, 10)).toBe('×9.30')
  expect(factor(5, 0)).toBe('–')
})

it('knows how sure a share is', () => {
  const [low, high] = certainty(65, 1000)
  expect(low).toBeCloseTo(0.0513, 3)
  expect(high).toBeCloseTo(0.0819, 3)
  expect(certainty(0, 0)).toEqual([0, 1])
})
