/**
 * The pointer over the plots. Drag: select; with Shift, the middle button, or
 * on the ruler: pan. An edge of the selection can be dragged. Wheel: zoom;
 * sideways or with Shift: pan. A click selects around what is there, a double
 * click zooms to the selection.
 */
import { signal, type Signal } from '@preact/signals'
import { between, width, type Range } from '../range'
import { look, select, selection, view } from '../state'
import { bounds, hover, pixels } from './plot'
import { around, fit, pan, pixelAt, timeAt, wheelFactor, zoom } from './scale'

/** The selection while it is being drawn. */
export const dragged: Signal<Range | null> = signal(null)

/** How far a press may move and still be a click. */
const CLICK_PIXELS = 3
const EDGE_PIXELS = 4
const CLICK_SPAN_MS = 5000

type Press = { x: number; view: Range; pans: boolean; fixed: number; moved: boolean }

/** What a click at a place is about: its time, and the span to select. */
export type Clicked = (x: number, track: string, y: number) => Range | null

export function watchPointer(plots: HTMLElement, left: () => number, clicked: Clicked): () => void {
  let press: Press | null = null
  const xOf = (event: MouseEvent) => event.clientX - left()

  function down(event: PointerEvent): void {
    const x = xOf(event)
    if (x < 0 || (event.button !== 0 && event.button !== 1)) return
    if ((event.target as HTMLElement).closest('button, .gutter')) return
    plots.setPointerCapture(event.pointerId)
    const pans = event.shiftKey || event.button === 1 || placeOf(event).track === 'ruler'
    const edge = pans ? null : edgeAt(x)
    const fixed = edge ?? timeAt(view.peek(), pixels.peek(), x)
    press = { x, view: view.peek(), pans, fixed, moved: edge !== null }
    plots.focus({ preventScroll: true })
    event.preventDefault()
  }

  function move(event: PointerEvent): void {
    const x = xOf(event)
    point(event, x)
    plots.style.cursor = cursorFor(x, press)
    if (!press) return
    if (Math.abs(x - press.x) > CLICK_PIXELS) press.moved = true
    if (!press.moved) return
    if (press.pans) {
      const by = ((press.x - x) / pixels.peek()) * width(press.view)
      look(fit({ from: press.view.from + by, to: press.view.to + by }, bounds()))
    } else {
      const time = timeAt(view.peek(), pixels.peek(), Math.min(Math.max(x, 0), pixels.peek()))
      dragged.value = between(press.fixed, time)
    }
  }

  function up(event: PointerEvent): void {
    const done = press
    press = null
    const range = dragged.peek()
    dragged.value = null
    if (!done || done.pans) return
    if (range && done.moved) select(range)
    else if (!done.moved) {
      const { track, y } = placeOf(event)
      const found = clicked(done.x, track, y)
      if (found) select(found)
    }
  }

  function cancel(): void {
    press = null
    dragged.value = null
  }

  function point(event: PointerEvent, x: number): void {
    if (x < 0 || x > pixels.peek()) return leave()
    const { track, y } = placeOf(event)
    const time = timeAt(view.peek(), pixels.peek(), x)
    hover.value = { x, y, time, track, clientX: event.clientX, clientY: event.clientY }
  }

  function leave(): void {
    hover.value = null
  }

  function wheel(event: WheelEvent): void {
    const x = xOf(event)
    if (x < 0) return
    event.preventDefault()
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      look(pan(view.peek(), (sideways / pixels.peek()) * 0.8, bounds()))
    } else {
      const time = timeAt(view.peek(), pixels.peek(), x)
      look(zoom(view.peek(), wheelFactor(event.deltaY, event.deltaMode), time, bounds()))
    }
  }

  function double(event: MouseEvent): void {
    if (xOf(event) >= 0) look(around(selection.peek(), 0.1, bounds()))
  }

  const listeners: [string, (event: never) => void][] = [
    ['pointerdown', down],
    ['pointermove', move],
    ['pointerup', up],
    ['pointercancel', cancel],
    ['pointerleave', leave],
    ['wheel', wheel],
    ['dblclick', double],
  ]
  for (const [name, listener] of listeners) {
    plots.addEventListener(name, listener as EventListener, { passive: false })
  }
  return () => {
    for (const [name, listener] of listeners) {
      plots.removeEventListener(name, listener as EventListener)
    }
  }
}

/** The other edge of the selection, if the pointer is on one of them. */
function edgeAt(x: number): number | null {
  const { from, to } = selection.peek()
  const place = (time: number) => pixelAt(view.peek(), pixels.peek(), time)
  if (place(to) - place(from) < 4 * EDGE_PIXELS) return null
  if (Math.abs(place(from) - x) <= EDGE_PIXELS) return to
  if (Math.abs(place(to) - x) <= EDGE_PIXELS) return from
  return null
}

function cursorFor(x: number, press: Press | null): string {
  if (press?.pans) return 'grabbing'
  return x >= 0 && (press === null ? edgeAt(x) !== null : press.moved) ? 'col-resize' : ''
}

/** The track under the pointer, and how far down in its plot. */
function placeOf(event: MouseEvent): { track: string; y: number } {
  const under = document.elementFromPoint(event.clientX, event.clientY)
  const row = under?.closest<HTMLElement>('[data-track]')
  const plot = row?.querySelector('.plot')?.getBoundingClientRect()
  return { track: row?.dataset.track ?? '', y: plot ? event.clientY - plot.top : 0 }
}

/** Five seconds around a time; less in a closer look, and never less than a pixel. */
export function spanAround(time: number): Range {
  const seen = width(view.peek())
  const half = Math.max(Math.min(CLICK_SPAN_MS / 2, seen / 8), seen / pixels.peek() / 2)
  return fit({ from: time - half, to: time + half }, bounds())
}
