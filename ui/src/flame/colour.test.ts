import { expect, it } from 'vitest'
import { change, changePaint, inkOn, luminance, plainPaint, type Colour } from './colour'

const parse = (text: string): Colour => {
  const parts = text.startsWith('#')
    ? [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16))
    : (text.match(/\d+/g) ?? []).map(Number)
  return parts as unknown as Colour
}

const contrast = (one: string, other: string): number => {
  const [high, low] = [luminance(parse(one)), luminance(parse(other))].sort((a, b) => b - a)
  return ((high ?? 0) + 0.05) / ((low ?? 0) + 0.05)
}

it('can be read on every colour', () => {
  for (const kernel of [true, false, undefined]) {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      const { fill, ink } = plainPaint({ name, value: 1, kernel })
      expect(contrast(fill, ink)).toBeGreaterThan(4.5)
    }
  }
  for (const theme of ['dark', 'light'] as const) {
    for (let moved = -1; moved <= 1; moved += 0.05) {
      const { fill, ink } = changePaint(moved, theme)
      expect(contrast(fill, ink)).toBeGreaterThan(4.5)
    }
  }
  expect(inkOn([255, 255, 255])).not.toBe(inkOn([0, 0, 0]))
})

it('shows doubling and halving alike', () => {
  expect(change(2, 1)).toBeCloseTo(-change(1, 2))
  expect(change(5, 0)).toBe(1)
  expect(change(0, 5)).toBe(-1)
  expect(change(0, 0)).toBe(0)
})

it('is the same for the same name', () => {
  expect(plainPaint({ name: 'x', value: 1 })).toBe(plainPaint({ name: 'x', value: 2 }))
})
