import { describe, expect, it } from 'vitest'
import { deepest, frameAt, levelsInSight, placeLevel, stretchOf } from './layout'
import { flatten } from './tree'

const flat = flatten({
  name: 'all',
  value: 100,
  children: [
    { name: 'a', value: 60, children: [{ name: 'b', value: 20 }] },
    { name: 'c', value: 30 },
  ],
})

describe('placeLevel', () => {
  it('puts boxes side by side', () => {
    const boxes = placeLevel(flat, 1, { from: 0, to: 100 }, 1000)
    expect(boxes.map(({ at, left, width }) => [at, left, width])).toEqual([
      [1, 0, 600],
      [3, 600, 300],
    ])
  })

  it('cuts callers to the stretch in sight', () => {
    const seen = stretchOf(flat, 2)
    expect(placeLevel(flat, 0, seen, 500)).toMatchObject([{ at: 0, left: 0, width: 500 }])
    expect(placeLevel(flat, 1, seen, 500)).toMatchObject([{ at: 1, left: 0, width: 500 }])
  })

  it('never has more boxes than pixels', () => {
    const children = Array.from({ length: 200_000 }, (_, at) => ({ name: `f${at}`, value: 1 }))
    const wide = flatten({ name: 'all', value: 200_000, children })
    const boxes = placeLevel(wide, 1, { from: 0, to: 200_000 }, 1400)
    expect(boxes.length).toBeLessThanOrEqual(1400)
    expect(boxes.length).toBeGreaterThan(1300)
    expect(boxes.every((box) => box.width === 1 && box.crumbs)).toBe(true)
  })

  it('has nothing for nothing', () => {
    expect(placeLevel(flat, 7, { from: 0, to: 100 }, 100)).toEqual([])
    expect(placeLevel(flat, 0, { from: 5, to: 5 }, 100)).toEqual([])
    expect(placeLevel(flat, 0, { from: 0, to: 100 }, 0)).toEqual([])
  })
})

describe('frameAt', () => {
  it('finds the frame under a pixel', () => {
    expect(frameAt(flat, 1, { from: 0, to: 100 }, 1000, 599)).toBe(1)
    expect(frameAt(flat, 1, { from: 0, to: 100 }, 1000, 601)).toBe(3)
    expect(frameAt(flat, 1, { from: 0, to: 100 }, 1000, 950)).toBe(-1)
    expect(frameAt(flat, 9, { from: 0, to: 100 }, 1000, 0)).toBe(-1)
  })
})

it('sees only some levels', () => {
  expect(levelsInSight(1_000_001, 18, 900, 360)).toEqual({ first: 50, last: 70 })
  expect(levelsInSight(3, 18, 0, 360)).toEqual({ first: 0, last: 2 })
})

it('knows how deep a subtree goes', () => {
  expect(deepest(flat, 0)).toBe(2)
  expect(deepest(flat, 3)).toBe(1)
})
