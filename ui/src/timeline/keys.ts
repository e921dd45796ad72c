/** The keys of the timeline while it has the focus. */
import { between, width } from '../range'
import {
  filter,
  filters,
  follow,
  look,
  lookAtAll,
  notice,
  recording,
  select,
  selection,
  view,
} from '../state'
import { formatMoment } from '../times'
import { coreTiles } from './cores'
import { columnAt, peakAt } from './shares'
import { stepEvent } from './events'
import { eventsSeen } from './lane'
import { bounds, pixels, rowCursor, zone } from './plot'
import { spanAround } from './pointer'
import { around, fit, pan, zoom } from './scale'
import { lines } from './strip'
import { best } from './tiles'
import { formatShare } from './values'

const PAN_PART = 0.15
const ZOOM_FACTOR = 1.4

/** Do what a key says; whether it said something. */
export function pressed(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey) return false
  const action = event.shiftKey ? SHIFTED[event.key] : KEYS[event.key]
  if (action) action(event)
  return action !== undefined
}

type Action = (event: KeyboardEvent) => void

const KEYS: Record<string, Action> = {
  ArrowLeft: () => look(pan(view.peek(), -PAN_PART, bounds())),
  ArrowRight: () => look(pan(view.peek(), PAN_PART, bounds())),
  ArrowUp: () => walk(-1),
  ArrowDown: () => walk(1),
  '+': () => zoomBy(1 / ZOOM_FACTOR),
  '=': () => zoomBy(1 / ZOOM_FACTOR),
  '-': () => zoomBy(ZOOM_FACTOR),
  Home: () => edge('from'),
  End: () => edge('to'),
  Enter: () => filterToRow(),
  Escape: () => (rowCursor.value = null),
  z: () => look(around(selection.peek(), 0.1, bounds())),
  a: () => lookAtAll(),
  s: () => select(view.peek()),
  n: () => stepTo(1),
  p: () => stepTo(-1),
}

const SHIFTED: Record<string, Action> = {
  ArrowLeft: (event) => moveSelection(-1, event.altKey),
  ArrowRight: (event) => moveSelection(1, event.altKey),
  '+': () => zoomBy(1 / ZOOM_FACTOR),
  '*': () => zoomBy(1 / ZOOM_FACTOR),
}

/** Zoom around the middle of the selection if it is seen, else of the view. */
export function zoomBy(factor: number): void {
  const now = view.peek()
  const middle = (selection.peek().from + selection.peek().to) / 2
  const seen = middle > now.from && middle < now.to
  look(zoom(now, factor, seen ? middle : (now.from + now.to) / 2, bounds()))
}

function edge(which: 'from' | 'to'): void {
  const span = width(view.peek())
  if (which === 'to' && recording.peek()?.live) return follow(span)
  const at = bounds()[which]
  look(fit(which === 'from' ? { from: at, to: at + span } : { from: at - span, to: at }, bounds()))
}

/** A hundredth of the view; both edges, or the end alone. */
function moveSelection(by: 1 | -1, endAlone: boolean): void {
  const { from, to } = selection.peek()
  const length = (width(view.peek()) / 100) * by
  const moved = endAlone ? between(from, to + length) : { from: from + length, to: to + length }
  if (width(moved) > 0) select(endAlone ? moved : fit(moved, bounds()))
}

function walk(by: 1 | -1): void {
  const all = lines.peek()
  const at = all.findIndex((line) => line.cpus.includes(rowCursor.peek() ?? -1))
  const next =
    all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)]
  const cpu = next?.cpus[0]
  if (!next || cpu === undefined) return
  rowCursor.value = cpu
  notice(`core ${cpu}: ${peakInView(next.rows)}`)
}

function peakInView(rows: number[]): string {
  const tile = best(coreTiles.list.peek(), view.peek(), pixels.peek())
  if (!tile) return 'not read yet'
  let most: number | null = null
  const first = Math.max(0, columnAt(tile, view.peek().from))
  for (let column = first; column < tile.data.columns; column++) {
    if (tile.range.from + column * tile.columnMs >= view.peek().to) break
    const peak = peakAt(tile.data, rows, column)
    if (peak !== null && peak > (most ?? -1)) most = peak
  }
  return most === null ? 'nothing recorded here' : `at most ${formatShare(most)} here`
}

function filterToRow(): void {
  const cpu = rowCursor.peek()
  if (cpu !== null) filter({ ...filters.peek(), cpu: String(cpu) })
}

/** The next event that matters, selected and told. */
export function stepTo(by: 1 | -1): void {
  const middle = (selection.peek().from + selection.peek().to) / 2
  const found = stepEvent(eventsSeen(), middle + by * 0.001, by)
  if (!found) {
    notice(`no ${by > 0 ? 'later' : 'earlier'} event in view`)
    return
  }
  const half = width(spanAround(found.time_ms)) / 2
  select({ from: found.time_ms - half, to: found.time_ms + half })
  notice(`${formatMoment(found.time_ms, zone.peek(), 3)} ${found.subject} ${found.title}`)
}
