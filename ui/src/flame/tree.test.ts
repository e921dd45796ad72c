import { describe, expect, it } from 'vitest'
import {
  called,
  callers,
  findPath,
  flatten,
  hidden,
  lacks,
  levelOf,
  pathOf,
  splice,
  type Frame,
} from './tree'

const tree = (): Frame => ({
  name: 'all',
  value: 10,
  children: [
    { name: 'kubelet', value: 6, children: [{ name: 'walk', value: 5, more: true, children: [] }] },
    {
      name: 'bash',
      value: 3,
      children: [
        { name: 'read', value: 1 },
        { name: 'fork', value: 2 },
      ],
    },
  ],
})

function deep(depth: number): Frame {
  let frame: Frame = { name: 'f', value: 1 }
  for (let at = 0; at < depth; at += 1) frame = { name: 'f', value: 1, children: [frame] }
  return frame
}

describe('flatten', () => {
  it('numbers frames from the left, by name, callers first', () => {
    const flat = flatten(tree())
    expect(flat.frame.map((frame) => frame.name)).toEqual([
      'all',
      'bash',
      'fork',
      'read',
      'kubelet',
      'walk',
    ])
    expect([...flat.start]).toEqual([0, 0, 0, 2, 3, 3])
    expect([...flat.parent]).toEqual([-1, 0, 1, 1, 0, 4])
    expect([...flat.end]).toEqual([6, 4, 3, 4, 6, 6])
    expect([0, 1, 2].map((level) => [...levelOf(flat, level)])).toEqual([[0], [1, 4], [2, 3, 5]])
  })

  it('weighs by something else', () => {
    const flat = flatten({ name: 'all', value: 1, base: 9 }, (frame) => frame.base ?? 0)
    expect(flat.value[0]).toBe(9)
  })

  it('takes a stack of a million functions, and a million beside each other', () => {
    expect(flatten(deep(1_000_000)).levels).toBe(1_000_001)
    const children = Array.from({ length: 1_000_000 }, () => ({ name: 'f', value: 1 }))
    expect(flatten({ name: 'all', value: 1_000_000, children }).size).toBe(1_000_001)
  }, 120_000)
})

describe('paths', () => {
  const flat = flatten(tree())

  it('are the names below the root', () => {
    expect(pathOf(flat, 5)).toEqual(['kubelet', 'walk'])
    expect(callers(flat, 5)).toEqual([0, 4, 5])
    expect(called(flat, 1)).toEqual([2, 3])
  })

  it('are found, or as far as they go', () => {
    expect(findPath(flat, ['kubelet', 'walk'])).toEqual({ at: 5, whole: true })
    expect(findPath(flat, ['kubelet', 'gone'])).toEqual({ at: 4, whole: false })
  })

  it('say where something was left out', () => {
    expect(lacks(flat, 4)).toBe(true)
    expect(lacks(flat, 1)).toBe(false)
  })
})

it('knows how much of a frame is not shown', () => {
  const flat = flatten({
    name: 'all',
    value: 10,
    children: [
      { name: 'a', value: 8, self: 2, more: true, children: [{ name: 'b', value: 4 }] },
      { name: 'c', value: 2, self: 0 },
    ],
  })
  expect(hidden(flat, 1)).toBeCloseTo(0.25)
  expect(hidden(flat, 3)).toBe(0)
})

describe('splice', () => {
  it('fills in a frame and leaves the original alone', () => {
    const before = tree()
    const filled = { name: 'walk', value: 5, children: [{ name: 'iterate', value: 4 }] }
    const after = flatten(splice(before, ['kubelet', 'walk'], filled))
    expect(pathOf(after, 6)).toEqual(['kubelet', 'walk', 'iterate'])
    expect(flatten(before).size).toBe(6)
  })

  it('makes up the callers that were pruned', () => {
    const after = flatten(splice(tree(), ['kubelet', 'rare', 'rarer'], { name: 'x', value: 1 }))
    const { at, whole } = findPath(after, ['kubelet', 'rare', 'rarer'])
    expect(whole).toBe(true)
    expect(after.value[at]).toBe(1)
  })
})
