/** Over all tracks: gaps hatched, the selection, the line under the pointer. */
import { useEffect, useRef } from 'preact/hooks'
import type { Gap } from '../api'
import { recording, selection, view } from '../state'
import { colour } from '../theme'
import { drawOnChange, prepare } from './frames'
import { hover, pixels } from './plot'
import { pixelAt } from './scale'
import { BAND_TOP, RULER_HEIGHT } from './ruler'
import { dragged } from './pointer'

/** Whether nothing at all was recorded in a gap, or one source was silent. */
export const isWhole = (gap: Gap): boolean => (gap.source ?? 'all') === 'all'

export function Overlay() {
  const place = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    const canvas = place.current as HTMLCanvasElement
    const observer = new ResizeObserver(() => (height = canvas.clientHeight))
    let height = canvas.clientHeight
    observer.observe(canvas)
    const stop = drawOnChange(() => draw(canvas, canvas.clientHeight || height))
    return () => {
      stop()
      observer.disconnect()
    }
  }, [])
  return <canvas ref={place} class="overlay" aria-hidden="true" />
}

function draw(canvas: HTMLCanvasElement, height: number): void {
  const width = pixels.value
  const range = view.value
  const context = prepare(canvas, width, height)
  const place = (time: number) => pixelAt(range, width, time)
  for (const gap of recording.value?.gaps ?? []) {
    const [left, right] = [place(gap.from_ms), place(gap.to_ms)]
    if (right < 0 || left > width) continue
    const [from, to] = [Math.max(left, -4), Math.min(Math.max(right, left + 2), width + 4)]
    if (isWhole(gap)) hatch(context, from, RULER_HEIGHT, to - from, height - RULER_HEIGHT)
    else hatch(context, from, BAND_TOP + 5, to - from, 4)
  }
  const chosen = dragged.value ?? selection.value
  box(context, place(chosen.from), place(chosen.to), width, height)
  const at = hover.value
  if (at) {
    context.fillStyle = colour('muted')
    context.fillRect(Math.round(at.x), RULER_HEIGHT - 10, 1, height)
  }
}

function hatch(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
): void {
  context.save()
  context.beginPath()
  context.rect(x, y, width, height)
  context.clip()
  context.fillStyle = colour('sunken')
  context.fillRect(x, y, width, height)
  context.strokeStyle = colour('hatch')
  context.lineWidth = 1.5
  context.beginPath()
  for (let at = Math.floor((x - height) / 8) * 8; at < x + width; at += 8) {
    context.moveTo(at, y + height)
    context.lineTo(at + height, y)
  }
  context.stroke()
  context.restore()
}

/** The selection: light around it, a line and a grip at each edge. */
function box(
  context: CanvasRenderingContext2D,
  left: number,
  right: number,
  width: number,
  height: number,
): void {
  const wide = Math.max(right - left, 3)
  if (left + wide < 0 || left > width) return
  context.fillStyle = colour('selection')
  // a sliver of a long recording must not hide what it selects
  const sliver = wide < 8
  context.globalAlpha = sliver ? 0.35 : 0.14
  context.fillRect(left, 0, wide, height)
  context.globalAlpha = 1
  if (sliver) return tab(context, left + wide / 2)
  context.fillRect(Math.round(left) - 0.5, 0, 1.5, height)
  context.fillRect(Math.round(left + wide) - 0.5, 0, 1.5, height)
  context.fillRect(left, 0, wide, 3)
}

/** A mark at the top that points at a selection too narrow to be seen. */
function tab(context: CanvasRenderingContext2D, x: number): void {
  context.beginPath()
  context.moveTo(x - 6, 0)
  context.lineTo(x + 6, 0)
  context.lineTo(x, 9)
  context.closePath()
  context.fill()
}
