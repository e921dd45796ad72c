/** What is diagnosed, and how far that is. */
import { computed, effect, signal, type Signal } from '@preact/signals'
import { readRange, writeRange } from '../address'
import { ApiError, get, link, query } from '../api'
import type { Range } from '../range'
import { alongSelect, param, propose, recording } from '../state'
import { coreTiles } from '../timeline/cores'
import { openingOf, type Document } from './document'
import { eventsOf } from './stream'

const SPAN = param('diagnose') // in the link; empty is the whole recording
const counted = signal(0)
const known = computed(() => recording.value !== null)

/** Done and all, while a diagnosis runs. */
export const progress: Signal<{ done: number; total: number } | null> = signal(null)

/** Where the recording ended when it was asked; a live one goes on. */
export const askedUntil: Signal<number> = signal(0)

/** The chosen span, or null for the whole recording. */
export const chosen = computed(() => readRange(SPAN.value))

/** Diagnose this span, or the whole recording; the same again asks again. */
export function diagnose(range: Range | null): void {
  SPAN.value = range ? writeRange(range) : ''
  counted.value += 1
}

// while the selection is diagnosed, another one that is chosen by hand is, too; following
// links moves the selection and leaves the diagnosis as it is
alongSelect((range) => {
  if (chosen.peek()) diagnose(range)
})

/** The span that is asked about, as it is now; null while nothing is known. */
export function asked(): Range | null {
  const whole = recording.peek()
  return chosen.value ?? (whole && { from: whole.from_ms, to: whole.to_ms })
}

/** For useQuery: reads what shall make it run again, which growth of the recording is not. */
export function ask(abort: AbortSignal): Promise<Document> | null {
  counted.value
  const range = known.value ? asked() : null
  if (!range) return null
  askedUntil.value = recording.peek()?.to_ms ?? range.to
  return stream(range, abort).then((document) => {
    const opening = openingOf(document)
    if (opening) propose(opening)
    return document
  })
}

async function stream(range: Range, abort: AbortSignal): Promise<Document> {
  await timelineSeen()
  try {
    const response = await fetch(link('/api/diagnosis', query(range)), {
      headers: { accept: 'text/event-stream' },
      signal: abort,
    })
    const streamed = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (response.ok && streamed) return await resultOf(response)
  } catch (error) {
    if (abort.aborted || error instanceof ApiError) throw error
  } finally {
    progress.value = null
  }
  // refused or cut off: the plain request tells why in the page's own words
  return get<Document>('/api/diagnosis', query(range), abort)
}

// longer than the timeline takes on a large recording; then it waits for something else
const PATIENCE_MS = 2000

/** A diagnosis may work for seconds: what is seen first comes first. */
function timelineSeen(): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, PATIENCE_MS)
    const stop = effect(() => {
      if (coreTiles.list.value.length === 0) return
      clearTimeout(timer)
      done()
    })
    setTimeout(stop, PATIENCE_MS)
  })
}

async function resultOf(response: Response): Promise<Document> {
  for await (const { event, data } of eventsOf(response)) {
    const told: unknown = JSON.parse(data)
    if (event === 'progress') progress.value = told as { done: number; total: number }
    if (event === 'error') {
      const { error, hint } = told as { error: string; hint?: string }
      throw new ApiError(hint ? { message: error, hint } : { message: error })
    }
    if (event === 'result') return told as Document
  }
  throw new Error('the answer ended early')
}
