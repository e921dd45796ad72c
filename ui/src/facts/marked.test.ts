import { afterAll, expect, test, vi } from 'vitest'

vi.stubGlobal('location', { search: '?row=leaky.service', pathname: '/' })
afterAll(() => vi.unstubAllGlobals())
const { firstAndMarked, row, rowAttributes } = await import('./marked')

test('the row that the link names is marked, no other', () => {
  expect(row.value).toBe('leaky.service')
  expect(rowAttributes('leaky.service')).toEqual({ 'data-marked': true, 'aria-current': 'true' })
  expect(rowAttributes('other.service')).toEqual({})
  expect(rowAttributes('')).toEqual({})
})

test('a marked row is listed even where the list is cut', () => {
  const units = ['a', 'b', 'c', 'd']
  const name = (each: string) => each
  expect(firstAndMarked(units, 2, name, 'd')).toEqual(['a', 'b', 'd'])
  expect(firstAndMarked(units, 2, name, 'a')).toEqual(['a', 'b'])
  expect(firstAndMarked(units, 2, name, '')).toEqual(['a', 'b'])
})
