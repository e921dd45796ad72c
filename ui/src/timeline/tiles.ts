/**
 * Pieces of the recording at several resolutions. What is there is drawn at
 * once, stretched; once the view rests, the piece that fits it is fetched, with
 * half a view of margin at either side so that small moves need nothing new.
 */
import { effect, signal, type Signal } from '@preact/signals'
import { failure, revived, type Failure } from '../api'
import { overlap, width, type Range } from '../range'

/** `partial`: the server has not read all of it yet; it is asked again. */
export type Tile<T> = { range: Range; columnMs: number; data: T; partial?: boolean }

/** A piece to ask for. */
export type Wanted = { range: Range; columns: number }

const REST_MS = 80
const PARTIAL_MS = 250
// a recording that grows is asked for again when this much, and a pixel of it, is new
const BEHIND_MS = 800
const KEPT = 6
export const MOST_COLUMNS = 4096

/**
 * The piece to fetch for a view: half a view around it, a column for each pixel
 * but none narrower than `finestMs`.
 */
export function wantedFor(
  view: Range,
  pixels: number,
  bounds: Range,
  finestMs: number,
): Wanted | null {
  const margin = Math.max(width(view) / 2, finestMs * 30)
  const range = overlap({ from: view.from - margin, to: view.to + margin }, bounds)
  if (!range || pixels < 1) return null
  const columnMs = Math.max(width(view) / pixels, finestMs)
  const columns = Math.ceil(width(range) / columnMs)
  return { range, columns: Math.min(Math.max(columns, 1), MOST_COLUMNS) }
}

/** Whether a piece holds all of the view that exists, in about its resolution. */
export function suits(
  tile: Omit<Tile<unknown>, 'data'>,
  view: Range,
  pixels: number,
  bounds: Range,
  finestMs: number,
): boolean {
  const seen = overlap(view, bounds)
  if (!seen) return true
  if (tile.partial) return false
  const missing = seen.to - tile.range.to
  if (tile.range.from > seen.from || missing > Math.min(tile.columnMs, BEHIND_MS)) return false
  const ideal = Math.max(width(view) / pixels, finestMs)
  return tile.columnMs <= ideal * 1.1 && tile.columnMs >= ideal * 0.4
}

/** The piece that shows most of the view; of those that show as much, the finest not too fine. */
export function best<T>(tiles: Tile<T>[], view: Range, pixels: number): Tile<T> | null {
  const ideal = width(view) / pixels
  let found: Tile<T> | null = null
  let foundScore = -Infinity
  for (const tile of tiles) {
    const shared = overlap(tile.range, view)
    const part = shared ? width(shared) / width(view) : 0
    // a hundredth of the view is worth more than any resolution
    const score = Math.round(part * 100) * 100 - Math.abs(Math.log2(tile.columnMs / ideal))
    if (score > foundScore) [found, foundScore] = [tile, score]
  }
  return found
}

export class Tiles<T> {
  readonly list: Signal<Tile<T>[]> = signal([])
  readonly error: Signal<Failure | null> = signal(null)
  readonly loading: Signal<boolean> = signal(false)
  private abort = new AbortController()
  private timer: ReturnType<typeof setTimeout> | undefined

  /** `finestMs`: columns narrower than this bring nothing new. */
  constructor(
    private readonly fetch: (wanted: Wanted, signal: AbortSignal) => Promise<Tile<T>>,
    private readonly finestMs = 0,
  ) {}

  /** Keep pieces for what `current` reads from signals; returns how to stop. */
  keep(current: () => { view: Range; pixels: number; bounds: Range; key: string }): () => void {
    let key = ''
    const stop = effect(() => {
      const now = current()
      const again = revived.value
      if (`${now.key} ${again}` !== key) {
        key = `${now.key} ${again}`
        this.forget()
      }
      clearTimeout(this.timer)
      const at = this.list.peek().length === 0 ? 0 : REST_MS
      this.timer = setTimeout(() => void this.load(now), at)
    })
    return () => {
      stop()
      clearTimeout(this.timer)
      this.abort.abort()
    }
  }

  private stale = false

  /** Other data are wanted: the old ones stay to be seen until the first new ones come. */
  private forget(): void {
    this.stale = true
  }

  private async load(now: { view: Range; pixels: number; bounds: Range }): Promise<void> {
    const { view, pixels, bounds } = now
    const fits = (tile: Tile<T>) => suits(tile, view, pixels, bounds, this.finestMs)
    clearTimeout(this.timer)
    if (!this.stale && this.list.peek().some(fits)) return
    const wanted = wantedFor(view, pixels, bounds, this.finestMs)
    if (!wanted) return
    this.abort.abort()
    this.abort = new AbortController()
    const signal = this.abort.signal
    this.loading.value = true
    try {
      const tile = await this.fetch(wanted, signal)
      if (signal.aborted) return
      this.add(tile)
      this.error.value = null
      if (tile.partial) this.timer = setTimeout(() => void this.load(now), PARTIAL_MS)
    } catch (error) {
      if (signal.aborted) return
      this.error.value = failure(error)
    }
    this.loading.value = false
  }

  private add(tile: Tile<T>): void {
    const old = this.stale ? [] : this.list.peek()
    this.stale = false
    const others = old.filter((each) => !replaces(tile, each))
    // the coarsest stays: it is the overview that fills everything else's margins
    const coarsest = Math.max(...others.map((each) => each.columnMs))
    while (others.length >= KEPT) {
      others.splice(
        others.findIndex((each) => each.columnMs < coarsest || others.length > KEPT),
        1,
      )
    }
    this.list.value = [...others, tile]
  }
}

/** A new piece makes an old one useless if it holds it all, as finely. */
function replaces(tile: Tile<unknown>, old: Tile<unknown>): boolean {
  const holds = tile.range.from <= old.range.from && tile.range.to >= old.range.to
  return holds && tile.columnMs <= old.columnMs * 1.01
}
