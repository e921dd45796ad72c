/**
 * The one store of the page. Components read these signals; what a user does
 * calls the functions below. Every change is in the address (address.ts), so
 * that a link reproduces the view, and back and forward travel through it.
 */
import { batch, effect, signal, type Signal } from '@preact/signals'
import { readAddress, RESERVED, writeAddress, type Filters, type Mode } from './address'
import type { Recording } from './api'
import { isEmpty, overlap, sameRange, type Range } from './range'

export type { Filters, Mode } from './address'
export type { Range } from './range'

/** What is served; null until it is known. Set by live.ts alone. */
export const recording: Signal<Recording | null> = signal(null)

/** The span the timeline shows, and the span everything below it is about. */
export const view: Signal<Range> = signal({ from: 0, to: 0 })
export const selection: Signal<Range> = signal({ from: 0, to: 0 })

export const filters: Signal<Filters> = signal({})
export const mode: Signal<Mode> = signal('flame')

/** Whether the diagnosis stands open at the side. */
export const panel: Signal<boolean> = signal(true)

/** Whether the view moves on with a recording that grows. */
export const following: Signal<boolean> = signal(true)

/** The last thing to tell in passing, and a number that tells two alike apart. */
export const noticed: Signal<{ text: string; number: number }> = signal({ text: '', number: 0 })

// Until somebody chose (or a diagnosis proposed the seconds of its first finding),
// the view is the whole recording and the selection its last two minutes; both then
// grow with it and stay out of the address.
const viewChosen = signal(false)
const selectionChosen = signal(false)
const DEFAULT_SELECTION_MS = 120_000
// everything below the timeline is read anew when the selection moves
const SELECTION_STEP_MS = 5_000

/** Say something in passing (also to a screen reader). */
export function notice(text: string): void {
  noticed.value = { text, number: noticed.peek().number + 1 }
}

/** Show this span in the timeline. Replaces the address: panning is no history. */
export function look(range: Range): void {
  if (isEmpty(range) || sameRange(range, view.peek())) return
  batch(() => {
    view.value = range
    viewChosen.value = true
    following.value = false
  })
}

/** Select this span by hand: one step of history, with what goes along. */
export function select(range: Range): void {
  if (isEmpty(range) || sameRange(range, selection.peek())) return
  step(() => {
    selection.value = range
    selectionChosen.value = true
    for (const run of goingAlong) run(range)
  })
}

const goingAlong: ((range: Range) => void)[] = []

/** Run this whenever a span is selected by hand, in the same step of history. */
export function alongSelect(run: (range: Range) => void): void {
  goingAlong.push(run)
}

// nothing moves by itself under the hands of somebody who looks already
let touched = false
const TOUCHES = ['pointerdown', 'keydown', 'wheel'] as const

/**
 * Select this span unless one was chosen, or somebody does something with the page already.
 * The address names it; no step of history.
 */
export function propose(range: Range): void {
  if (selectionChosen.peek() || touched || isEmpty(range)) return
  const inside = recorded(range)
  batch(() => {
    selection.value = inside
    selectionChosen.value = true
    if (!viewChosen.peek()) reveal(inside)
  })
}

/** Filter everything; names with no value are dropped. One step of history. */
export function filter(wanted: Filters): void {
  step(() => {
    filters.value = pruned(wanted)
  })
}

/**
 * Go to a piece of evidence: any of range, filters and mode, and what `also` sets; one
 * step of history. Of the range only what was recorded is selected.
 */
export function jump(target: {
  range?: Range
  filters?: Filters
  mode?: Mode
  also?: () => void
}): void {
  step(() => {
    if (target.range && !isEmpty(target.range)) {
      const range = recorded(target.range)
      selection.value = range
      selectionChosen.value = true
      reveal(range)
    }
    if (target.filters) filters.value = pruned(target.filters)
    if (target.mode) mode.value = target.mode
    target.also?.()
  })
}

/** Show a tab; one step of history. */
export function show(wanted: Mode): void {
  step(() => {
    mode.value = wanted
  })
}

/** The whole recording again, following it while it grows. */
export function lookAtAll(): void {
  batch(() => {
    viewChosen.value = false
    following.value = true
    settle()
  })
}

/** The last `span` of the recording, moving on with it. */
export function follow(span: number): void {
  const known = recording.peek()
  if (!known) return
  batch(() => {
    view.value = { from: Math.max(known.from_ms, known.to_ms - span), to: known.to_ms }
    viewChosen.value = true
    following.value = true
  })
}

/** A recording was read, or grew: set or move what was not chosen by hand. */
export function arrive(known: Recording): void {
  batch(() => {
    const before = recording.peek()
    const grown = known.to_ms - (before?.to_ms ?? known.to_ms)
    recording.value = known
    if (!before) dropForeign({ from: known.from_ms, to: known.to_ms })
    settle()
    if (viewChosen.peek() && following.peek() && grown > 0) {
      view.value = { from: view.peek().from + grown, to: view.peek().to + grown }
    }
  })
}

/**
 * A value of a panel that belongs into the link (search text, merge, …).
 * Its fallback is not written. Make it once, at the top of a module.
 */
export function param(name: string, fallback = ''): Signal<string> {
  if (RESERVED.has(name) || params.has(name)) throw new Error(`the parameter ${name} is taken`)
  const value = signal(readAddress(location.search).params[name] ?? fallback)
  params.set(name, { value, fallback })
  registered.value += 1
  return value
}

const params = new Map<string, { value: Signal<string>; fallback: string }>()
const registered = signal(0)

function pruned(wanted: Filters): Filters {
  return Object.fromEntries(Object.entries(wanted).filter(([, value]) => value)) as Filters
}

/** The part of a range that was recorded; the range itself if none of it was. */
function recorded(range: Range): Range {
  const known = recording.peek()
  return (known && overlap(range, { from: known.from_ms, to: known.to_ms })) ?? range
}

/** Widen or move the view so that the range can be seen, with room around it. */
function reveal(range: Range): void {
  const { from, to } = view.peek()
  const span = range.to - range.from
  const inside = range.from >= from && range.to <= to
  if (inside && span > (to - from) / 200) return
  const room = Math.max(span * 4, 20_000)
  const known = recording.peek()
  view.value = {
    from: Math.max(range.from - room, known?.from_ms ?? -Infinity),
    to: Math.min(range.to + room, known?.to_ms ?? Infinity),
  }
  viewChosen.value = true
  following.value = false
}

/** A link made of another recording, or of a part that is gone by now. */
function dropForeign(whole: Range): void {
  const seen = overlap(view.peek(), whole)
  if (viewChosen.peek() && seen) change(view, seen)
  const chosen = overlap(selection.peek(), whole)
  const foreign = selectionChosen.peek() && !chosen
  if (selectionChosen.peek() && chosen) change(selection, chosen)
  if (!seen) viewChosen.value = false
  if (foreign) {
    selectionChosen.value = false
    notice('The time of this link is not in this recording; its end is shown instead.')
  }
}

function settle(): void {
  const known = recording.peek()
  if (!known) return
  const from = known.from_ms
  const to = Math.max(known.to_ms, from + 1) // one reading has no length
  if (!viewChosen.peek()) change(view, { from, to })
  const behind = Math.abs(to - selection.peek().to)
  if (!selectionChosen.peek() && behind >= SELECTION_STEP_MS) {
    change(selection, { from: Math.max(from, to - DEFAULT_SELECTION_MS), to })
  }
}

function change(target: Signal<Range>, range: Range): void {
  if (!sameRange(target.peek(), range)) target.value = range
}

// --- the address ---

let stepping = false
let writing: ReturnType<typeof setTimeout> | undefined
// browsers allow about 100 changes of the address in 30 s
const ADDRESS_REST_MS = 250

/** Make changes that are one step of history together. */
function step(changes: () => void): void {
  flush()
  stepping = true
  try {
    batch(changes)
  } finally {
    stepping = false
  }
}

function currentAddress(): string {
  registered.value
  const values: Record<string, string> = {}
  for (const [name, { value, fallback }] of params) {
    if (value.value !== fallback) values[name] = value.value
  }
  return writeAddress({
    view: viewChosen.value ? view.value : null,
    selection: selectionChosen.value ? selection.value : null,
    filters: filters.value,
    mode: mode.value,
    params: values,
  })
}

let pending: string | null = null

function flush(): void {
  clearTimeout(writing)
  if (pending !== null) history.replaceState(null, '', location.pathname + pending)
  pending = null
}

/** Take everything from the address: at the start, and on back and forward. */
function restore(): void {
  clearTimeout(writing)
  pending = null
  const address = readAddress(location.search)
  batch(() => {
    viewChosen.value = address.view !== null
    selectionChosen.value = address.selection !== null
    following.value = address.view === null
    if (address.view) view.value = address.view
    if (address.selection) selection.value = address.selection
    filters.value = address.filters
    mode.value = address.mode
    for (const [name, { value, fallback }] of params) {
      value.value = address.params[name] ?? fallback
    }
    settle()
  })
}

/** Keep the address and the state the same from now on. */
export function keepAddress(): void {
  restore()
  addEventListener('popstate', restore)
  addEventListener('pagehide', flush)
  for (const name of TOUCHES) addEventListener(name, () => (touched = true), true)
  effect(() => {
    const wanted = currentAddress()
    if (wanted === (pending ?? location.search)) return
    clearTimeout(writing)
    if (stepping) {
      pending = null
      history.pushState(null, '', location.pathname + wanted)
      return
    }
    pending = wanted
    writing = setTimeout(flush, ADDRESS_REST_MS)
  })
}
