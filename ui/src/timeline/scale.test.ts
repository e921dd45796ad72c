import { describe, expect, test } from 'vitest'
import { around, CLOSEST_MS, fit, pan, pixelAt, timeAt, wheelFactor, zoom } from './scale'

const bounds = { from: 1000, to: 2000 }

describe('zoom', () => {
  test('keeps the time under the pointer where it is', () => {
    const view = { from: 1200, to: 1400 }
    const closer = zoom(view, 0.5, 1250, bounds)
    expect(closer).toEqual({ from: 1225, to: 1325 })
    expect(pixelAt(closer, 800, 1250)).toBeCloseTo(pixelAt(view, 800, 1250))
  })

  test('does not leave the recording, nor show more than it', () => {
    expect(zoom({ from: 1000, to: 1100 }, 4, 1100, bounds)).toEqual({ from: 1000, to: 1400 })
    expect(zoom({ from: 1500, to: 1900 }, 100, 1600, bounds)).toEqual(bounds)
  })

  test('ends at the closest look', () => {
    const view = zoom({ from: 1500, to: 1503 }, 1e-9, 1501, bounds)
    expect(view.to - view.from).toBeCloseTo(CLOSEST_MS)
  })

  test('in and out again is where it was', () => {
    const view = { from: 1300, to: 1500 }
    const back = zoom(zoom(view, 0.3, 1420, bounds), 1 / 0.3, 1420, bounds)
    expect(back.from).toBeCloseTo(view.from)
    expect(back.to).toBeCloseTo(view.to)
  })
})

test('panning stops at the ends', () => {
  expect(pan({ from: 1100, to: 1200 }, 0.5, bounds)).toEqual({ from: 1150, to: 1250 })
  expect(pan({ from: 1100, to: 1200 }, -9, bounds)).toEqual({ from: 1000, to: 1100 })
  expect(pan({ from: 1850, to: 1950 }, 9, bounds)).toEqual({ from: 1900, to: 2000 })
})

test('fit keeps the middle of what was too close', () => {
  expect(fit({ from: 1500, to: 1500 }, bounds)).toEqual({ from: 1499, to: 1501 })
})

test('pixels and times are each other’s inverse', () => {
  const view = { from: 1_790_000_000_000, to: 1_790_000_000_010 }
  expect(pixelAt(view, 1400, timeAt(view, 1400, 333))).toBeCloseTo(333, 0)
})

test('a wheel of lines and one of pixels turn alike, and never wildly', () => {
  expect(wheelFactor(3, 1)).toBeCloseTo(wheelFactor(48, 0))
  expect(wheelFactor(1e6, 0)).toBeLessThan(2)
  expect(wheelFactor(120, 0) * wheelFactor(-120, 0)).toBeCloseTo(1)
})

test('around gives room', () => {
  expect(around({ from: 1500, to: 1510 }, 1, bounds)).toEqual({ from: 1490, to: 1520 })
})
