import { describe, expect, it } from 'vitest'
import { flatten } from './tree'
import { outline, walk } from './walk'

const flat = flatten({
  name: 'all',
  value: 10,
  children: [
    {
      name: 'a',
      value: 3,
      children: [
        { name: 'x', value: 1 },
        { name: 'y', value: 2 },
      ],
    },
    { name: 'b', value: 0 },
    { name: 'c', value: 6, children: [{ name: 'z', value: 5 }] },
  ],
})
const [all, a, x, y, , c, z] = [0, 1, 2, 3, 4, 5, 6] as const

describe('walk', () => {
  it('goes to the widest called function, and back', () => {
    expect(walk(flat, all, 'in')).toBe(c)
    expect(walk(flat, a, 'in')).toBe(y)
    expect(walk(flat, y, 'out')).toBe(a)
    expect(walk(flat, all, 'out')).toBe(all)
    expect(walk(flat, z, 'in')).toBe(z)
  })

  it('goes along a level, over what has no width', () => {
    expect(walk(flat, a, 'right')).toBe(c)
    expect(walk(flat, c, 'left')).toBe(a)
    expect(walk(flat, y, 'right')).toBe(z)
    expect(walk(flat, z, 'right')).toBe(z)
  })

  it('stays below what is zoomed to', () => {
    expect(walk(flat, y, 'right', a)).toBe(y)
    expect(walk(flat, z, 'first', c)).toBe(c)
    expect(walk(flat, all, 'last')).toBe(z)
  })
})

describe('outline', () => {
  it('has the widest, and what is around the current one', () => {
    expect(outline(flat, all, all, 100)).toEqual([0, 1, 2, 3, 4, 5, 6])
    expect(outline(flat, all, x, 2)).toEqual([all, a, x, y, c].sort((p, q) => p - q))
  })
})
