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
  const gaps = recording.value?.gaps ?? []
  const below = height - RULER_HEIGHT
  drawGaps(context, gaps.filter(isWhole), place, width, RULER_HEIGHT, below)
  const single = gaps.filter((gap) => !isWhole(gap))
  drawGaps(context, single, place, width, BAND_TOP + 5, 4)
  const chosen = dragged.value ?? selection.value
  box(context, place(chosen.from), place(chosen.to), width, height)
  const at = hover.value
  if (at) {
    context.fillStyle = colour('muted')
    context.fillRect(Math.round(at.x), RULER_HEIGHT - 10, 1, height)
  }
}

/** Gaps in the order of time; those that share pixels are drawn once. */
function drawGaps(
  context: CanvasRenderingContext2D,
  gaps: Gap[],
  place: (time: number) => number,
  width: number,
  top: number,
  height: number,
): void {
  context.fillStyle = hatched(context)
  let done = -Infinity
  for (const gap of gaps) {
    const left = place(gap.from_ms)
    const right = Math.max(place(gap.to_ms), left + 2)
    if (right < 0 || left > width || right <= done) continue
    const from = Math.max(left, done, 0)
    context.fillRect(from, top, Math.min(right, width) - from, height)
    done = right
  }
}

let pattern: { key: string; fill: CanvasPattern | string } | null = null

/** Slanted lines, as the theme has them. */
function hatched(context: CanvasRenderingContext2D): CanvasPattern | string {
  const [ground, line] = [colour('sunken'), colour('hatch')]
  if (pattern?.key === ground + line) return pattern.fill
  const tile = document.createElement('canvas')
  tile.width = tile.height = 8
  const drawing = tile.getContext('2d') as CanvasRenderingContext2D
  drawing.fillStyle = ground
  drawing.fillRect(0, 0, 8, 8)
  drawing.strokeStyle = line
  drawing.lineWidth = 1.5
  for (const at of [-8, 0, 8]) {
    drawing.moveTo(at - 1, 9)
    drawing.lineTo(at + 9, -1)
  }
  drawing.stroke()
  pattern = { key: ground + line, fill: context.createPattern(tile, 'repeat') ?? line }
  return pattern.fill
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
  context.globalAlpha = sliver ? 0.35 : 0.11
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
