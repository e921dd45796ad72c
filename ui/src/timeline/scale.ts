/** Zooming and panning as arithmetic on ranges. */
import { width, type Range } from '../range'

/** The closest look: pixels of some microseconds. */
export const CLOSEST_MS = 2

export const timeAt = (view: Range, pixels: number, x: number): number =>
  view.from + (x / pixels) * width(view)

export const pixelAt = (view: Range, pixels: number, time: number): number =>
  ((time - view.from) / width(view)) * pixels

/** Keep a view inside the recording, and not closer than can be drawn. */
export function fit(view: Range, bounds: Range): Range {
  const span = Math.min(Math.max(width(view), CLOSEST_MS), width(bounds))
  const middle = (view.from + view.to) / 2
  const from = width(view) === span ? view.from : middle - span / 2
  const start = Math.min(Math.max(from, bounds.from), bounds.to - span)
  return { from: start, to: start + span }
}

/** Zoom by a factor (under 1: closer), the given time staying where it is. */
export function zoom(view: Range, factor: number, time: number, bounds: Range): Range {
  const span = Math.min(Math.max(width(view) * factor, CLOSEST_MS), width(bounds))
  const part = (time - view.from) / width(view)
  return fit({ from: time - part * span, to: time + (1 - part) * span }, bounds)
}

/** Move by a part of what is seen: 0.5 is half a view to the right. */
export function pan(view: Range, part: number, bounds: Range): Range {
  const by = part * width(view)
  return fit({ from: view.from + by, to: view.to + by }, bounds)
}

/** The factor of one turn of a wheel; the same for mice that count lines. */
export function wheelFactor(delta: number, deltaMode: number): number {
  const pixels = deltaMode === 1 ? delta * 16 : deltaMode === 2 ? delta * 400 : delta
  return Math.exp(Math.min(Math.max(pixels, -240), 240) * 0.0022)
}

/** Around a range, with room at both sides. */
export function around(range: Range, room: number, bounds: Range): Range {
  const more = width(range) * room
  return fit({ from: range.from - more, to: range.to + more }, bounds)
}
