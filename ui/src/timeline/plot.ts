/** What the parts of the timeline share: its width, its zone, and the pointer. */
import { effect, signal, type Signal } from '@preact/signals'
import { recording } from '../state'
import type { Range } from '../range'
import type { Zone } from '../times'

/** Width of the plots in CSS pixels. */
export const pixels: Signal<number> = signal(0)

/** Where the pointer is: its pixel and time, and the track and height in it. */
export type Hover = {
  x: number
  y: number
  time: number
  track: string
  clientX: number
  clientY: number
}

export const hover: Signal<Hover | null> = signal(null)

/** The core that the keys walk to; a row of the strip is marked. */
export const rowCursor: Signal<number | null> = signal(null)

const KEY = 'nodescope.zone'

/** The zone of every time the page shows. */
export const zone: Signal<Zone> = signal(localStorage.getItem(KEY) === 'local' ? 'local' : 'utc')

effect(() => localStorage.setItem(KEY, zone.value))

/** The whole recording. */
export function bounds(): Range {
  const known = recording.value
  return known
    ? { from: known.from_ms, to: Math.max(known.to_ms, known.from_ms + 1) }
    : { from: 0, to: 1 }
}
