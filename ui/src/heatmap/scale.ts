/** Colours of the heatmap's cells. In every scale brightness alone tells the order. */

import { mix, type Colour } from '../flame/colour'

export type Measure = 'count' | 'kernel'
export type Theme = 'dark' | 'light'

// By count: as in the pictures that `nodescope heatmap` writes.
const COUNT: Record<Theme, readonly Colour[]> = {
  dark: [
    [24, 22, 34],
    [66, 30, 96],
    [137, 38, 104],
    [206, 66, 72],
    [243, 124, 46],
    [252, 222, 132],
  ],
  light: [
    [250, 247, 241],
    [253, 224, 166],
    [249, 168, 87],
    [226, 94, 46],
    [165, 38, 38],
    [84, 14, 34],
  ],
}

// By share of kernel time: in other hues, so that nobody takes one for the other.
const KERNEL: Record<Theme, readonly Colour[]> = {
  dark: [
    [20, 24, 36],
    [26, 52, 92],
    [24, 96, 128],
    [40, 148, 140],
    [130, 200, 130],
    [246, 240, 150],
  ],
  light: [
    [246, 249, 246],
    [196, 228, 205],
    [116, 190, 180],
    [46, 138, 158],
    [32, 84, 132],
    [20, 32, 80],
  ],
}

export const LEVELS = 256
const LEAST = 14 // of a cell with samples

/** 256 colours from nothing to most, as the bytes of an image. */
export function ramp(measure: Measure, theme: Theme): Uint32Array {
  const stops = (measure === 'count' ? COUNT : KERNEL)[theme]
  const pixels = new Uint32Array(LEVELS)
  const bytes = new Uint8ClampedArray(pixels.buffer)
  for (let level = 0; level < LEVELS; level += 1) {
    const at = (level / (LEVELS - 1)) * (stops.length - 1)
    const low = Math.min(Math.floor(at), stops.length - 2)
    const colour = mix(stops[low] as Colour, stops[low + 1] as Colour, at - low)
    bytes.set([colour[0], colour[1], colour[2], 255], level * 4)
  }
  return pixels
}

/** The count that gets the last colour: one cell of an outburst does not darken the others. */
export function brightest(counts: ArrayLike<number>): number {
  const occurring: number[] = []
  let most = 0
  for (let at = 0; at < counts.length; at += 1) {
    const value = counts[at] as number
    if (value > 0) occurring.push(value)
    if (value > most) most = value
  }
  if (occurring.length < 200) return Math.max(most, 1)
  const sorted = Float64Array.from(occurring).sort()
  return Math.max(1, sorted[Math.floor((sorted.length - 1) * 0.998)] as number)
}

/** Levels (0 … 255) of all cells. What occurs at all is never the colour of nothing. */
export function levels(
  measure: Measure,
  counts: ArrayLike<number>,
  kernel: ArrayLike<number> | undefined,
): Uint8Array {
  const found = new Uint8Array(counts.length)
  const most = brightest(counts)
  for (let at = 0; at < counts.length; at += 1) {
    const value = counts[at] as number
    if (value === 0) continue
    const share = measure === 'count' ? value / most : kernel ? (kernel[at] as number) / value : 0
    found[at] = Math.max(LEAST, Math.min(255, Math.round(share * 255)))
  }
  return found
}
