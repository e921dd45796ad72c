import { afterEach, expect, test, vi } from 'vitest'
import { lineHeight } from './timeline/lines'

afterEach(() => vi.unstubAllGlobals())

test('96 cores leave room for the flame graph on a low screen', () => {
  vi.stubGlobal('innerHeight', 800)
  expect(96 * lineHeight(96)).toBeLessThanOrEqual(100)
  vi.stubGlobal('innerHeight', 1080)
  expect(lineHeight(96)).toBe(2)
})
