/** The events: four lanes, serious ones as diamonds, marks as flags. */
import { useEffect, useRef } from 'preact/hooks'
import { view } from '../state'
import { colour } from '../theme'
import { eventTiles, isMark, laneOf, LANES, type NodeEvent } from './events'
import { drawOnChange, prepare } from './frames'
import { pixels } from './plot'
import { pixelAt } from './scale'
import { best } from './tiles'

export const LANE_HEIGHT = 14
const HEIGHT = LANES.length * LANE_HEIGHT + 2

/** The events in the piece that is seen. */
export function eventsSeen(): NodeEvent[] {
  return best(eventTiles.list.value, view.value, pixels.value)?.data.events ?? []
}

export function EventLane() {
  const place = useRef<HTMLCanvasElement>(null)
  useEffect(() => drawOnChange(() => place.current && draw(place.current)), [])
  return (
    <canvas
      ref={place}
      class="lane"
      style={{ height: `${HEIGHT}px` }}
      data-events={eventsSeen().length}
    />
  )
}

export function LaneGutter() {
  const leftOff = best(eventTiles.list.value, view.value, pixels.value)?.data.leftOff ?? 0
  return (
    <>
      <ul class="lanes">
        {LANES.map((lane) => (
          <li key={lane}>{lane}</li>
        ))}
      </ul>
      {leftOff > 0 && (
        <small class="muted" title="Zoom in to see all of them; the serious ones are all here">
          {leftOff.toLocaleString('en')} not shown
        </small>
      )}
    </>
  )
}

function draw(canvas: HTMLCanvasElement): void {
  const width = pixels.value
  const range = view.value
  const context = prepare(canvas, width, HEIGHT)
  const events = eventsSeen()
  context.fillStyle = colour('line')
  for (let lane = 1; lane < LANES.length; lane++) {
    context.fillRect(0, lane * LANE_HEIGHT + 0.5, width, 0.5)
  }
  const places = new Set<string>()
  const once = (x: number, lane: number, apart: number, what: string): boolean => {
    const key = `${what} ${lane} ${Math.round(x / apart)}`
    if (places.has(key)) return false
    places.add(key)
    return true
  }
  context.fillStyle = colour('line-strong')
  const ordinary = events.filter((event) => !event.serious && !isMark(event))
  // where there are many they are a background, and said once for each pixel
  context.globalAlpha = ordinary.length > width / 4 ? 0.45 : 1
  for (const event of ordinary) {
    const x = pixelAt(range, width, event.time_ms)
    const lane = laneOf(event.kind)
    if (x < -2 || x > width + 2 || !once(x, lane, 1, 'plain')) continue
    context.fillRect(Math.round(x), lane * LANE_HEIGHT + 4, 1, LANE_HEIGHT - 6)
  }
  context.globalAlpha = 1
  // what matters is drawn last, on top of the crowd
  for (const event of events) {
    if (!event.serious && !isMark(event)) continue
    const x = pixelAt(range, width, event.time_ms)
    const lane = laneOf(event.kind)
    if (x < -8 || x > width + 8 || !once(x, lane, 3, event.serious ? 'serious' : 'mark')) continue
    const y = lane * LANE_HEIGHT + LANE_HEIGHT / 2 + 1
    if (event.serious) diamond(context, x, y)
    else flag(context, x, y)
  }
}

function diamond(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.beginPath()
  context.moveTo(x, y - 5)
  context.lineTo(x + 5, y)
  context.lineTo(x, y + 5)
  context.lineTo(x - 5, y)
  context.closePath()
  context.fillStyle = colour('bad')
  context.fill()
  context.strokeStyle = colour('surface')
  context.stroke()
}

function flag(context: CanvasRenderingContext2D, x: number, y: number): void {
  context.fillStyle = colour('accent')
  context.fillRect(x, y - 6, 1.5, 12)
  context.fillRect(x, y - 6, 7, 5)
}
