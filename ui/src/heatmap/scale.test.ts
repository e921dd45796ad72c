import { expect, it } from 'vitest'
import { brightest, levels, ramp } from './scale'

const brightness = (pixel: number): number => {
  const bytes = new Uint8Array(new Uint32Array([pixel]).buffer)
  return 0.3 * (bytes[0] ?? 0) + 0.59 * (bytes[1] ?? 0) + 0.11 * (bytes[2] ?? 0)
}

it('gets brighter (or darker) step by step', () => {
  for (const measure of ['count', 'kernel'] as const) {
    for (const theme of ['dark', 'light'] as const) {
      const bright = [...ramp(measure, theme)].map(brightness)
      const sign = theme === 'dark' ? 1 : -1
      for (let at = 8; at < bright.length; at += 8) {
        expect(sign * ((bright[at] ?? 0) - (bright[at - 8] ?? 0))).toBeGreaterThan(0)
      }
    }
  }
})

it('is not blinded by one cell', () => {
  const counts = new Uint16Array(5000).fill(10)
  counts[17] = 60_000
  expect(brightest(counts)).toBe(10)
  expect(brightest(new Uint16Array(10))).toBe(1)
})

it('shows what occurs at all', () => {
  const counts = new Uint16Array([0, 1, 1000])
  expect([...levels('count', counts, undefined)]).toEqual([0, 14, 255])
  expect([...levels('kernel', counts, new Uint16Array([0, 1, 500]))]).toEqual([0, 255, 128])
  expect([...levels('kernel', counts, new Uint16Array([0, 0, 0]))]).toEqual([0, 14, 14])
})
