/** The times at the top, frozen ranges, and gaps of single sources. */
import { useEffect, useRef } from 'preact/hooks'
import { recording, view } from '../state'
import { colour } from '../theme'
import { ticks } from '../times'
import { drawOnChange, prepare } from './frames'
import { pixels, zone } from './plot'
import { pixelAt } from './scale'

export const RULER_HEIGHT = 30

/** Where frozen ranges and gaps of one source are drawn, from the ruler's top. */
export const BAND_TOP = 20

export function Ruler() {
  const place = useRef<HTMLCanvasElement>(null)
  useEffect(() => drawOnChange(() => place.current && draw(place.current)), [])
  return <canvas ref={place} class="ruler" style={{ height: `${RULER_HEIGHT}px` }} />
}

function draw(canvas: HTMLCanvasElement): void {
  const width = pixels.value
  const range = view.value
  const context = prepare(canvas, width, RULER_HEIGHT)
  context.font = '11px system-ui, sans-serif'
  context.textBaseline = 'middle'
  for (const { time, label, date } of ticks(range, width, zone.value)) {
    const x = Math.round(pixelAt(range, width, time))
    context.fillStyle = colour('line-strong')
    context.fillRect(x, 4, 1, 14)
    context.fillStyle = colour(date ? 'text' : 'muted')
    // half a time is worse than none
    if (x + 5 + context.measureText(label).width < width) context.fillText(label, x + 5, 11)
  }
  for (const frozen of recording.value?.frozen ?? []) {
    const [left, right] = [
      pixelAt(range, width, frozen.from_ms),
      pixelAt(range, width, frozen.to_ms),
    ]
    if (right < 0 || left > width) continue
    context.fillStyle = colour('frozen')
    context.fillRect(left, BAND_TOP, Math.max(2, right - left), 4)
  }
}
