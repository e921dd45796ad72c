/** A lane for each of the processes that ran most in view; one line of names while folded. */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { get, query } from '../api'
import { view } from '../state'
import { colour } from '../theme'
import { drawOnChange, prepare } from './frames'
import { bounds, hover, pixels } from './plot'
import { pixelAt } from './scale'
import { best, Tiles, type Tile } from './tiles'
import { sayValue } from './values'

const LANE = 16
const FINEST_MS = 1000

type Lane = { comm: string; samples: number; values: (number | null)[] }
type Answer = {
  from_ms: number
  column_ms: number
  unit: string
  complete: boolean
  processes: Lane[]
}
type Lanes = { unit: string; lanes: Lane[] }

export const processTiles = new Tiles<Lanes>(async ({ range, columns }, signal) => {
  const answer = await get<Answer>('/api/processes', { ...query(range), columns }, signal)
  const { from_ms: from, column_ms: columnMs, processes } = answer
  const length = processes[0]?.values.length ?? columns
  return {
    range: { from, to: from + length * columnMs },
    columnMs,
    partial: !answer.complete,
    data: { unit: answer.unit, lanes: processes },
  }
}, FINEST_MS)

const unfolded = signal(false)

const current = (): Tile<Lanes> | null => best(processTiles.list.value, view.value, pixels.value)

/** The value of a lane at a time, or the highest in view. */
export function valueOf(tile: Tile<unknown>, lane: Lane, time: number | undefined): number | null {
  const columnAt = (at: number) => Math.floor((at - tile.range.from) / tile.columnMs)
  if (time !== undefined) return lane.values[columnAt(time)] ?? null
  const { from, to } = view.value
  const seen = lane.values.slice(Math.max(0, columnAt(from)), columnAt(to) + 1)
  const known = seen.filter((value): value is number => value !== null)
  return known.length === 0 ? null : Math.max(...known)
}

export function ProcessTrack() {
  useEffect(
    () =>
      processTiles.keep(() => ({
        view: view.value,
        pixels: pixels.value,
        bounds: bounds(),
        key: '',
      })),
    [],
  )
  const open = unfolded.value
  const tile = current()
  const lanes = tile?.data.lanes ?? []
  const error = processTiles.error.value
  return (
    <>
      <div class={open ? 'gutter' : 'gutter folded'}>
        <h3>
          <button
            class="fold"
            aria-expanded={open}
            title="Cores that the busiest processes used: a lane for each, its peak in view beside it"
            onClick={() => (unfolded.value = !open)}
          >
            Processes
          </button>
        </h3>
        {open && tile && <Names tile={tile} />}
      </div>
      <div class={open ? 'plot' : 'plot folded'} data-error={error?.message}>
        {open ? <Canvas lanes={lanes.length} /> : tile && <Names tile={tile} />}
        {error && <span class="track-error">{error.message}</span>}
      </div>
    </>
  )
}

/** Each name with its value under the pointer, else the highest in view. */
function Names({ tile }: { tile: Tile<Lanes> }) {
  const at = hover.value?.time
  if (tile.data.lanes.length === 0) return <span class="track-note">no samples here</span>
  return (
    <ul class="series processes">
      {tile.data.lanes.map((lane) => (
        <li key={lane.comm}>
          <span title={lane.comm}>{lane.comm}</span>
          <b>{sayValue(valueOf(tile, lane, at), tile.data.unit, at === undefined)}</b>
        </li>
      ))}
    </ul>
  )
}

function Canvas({ lanes }: { lanes: number }) {
  const place = useRef<HTMLCanvasElement>(null)
  useEffect(() => drawOnChange(() => place.current && draw(place.current)), [])
  const height = Math.max(1, lanes) * LANE + 18
  return <canvas ref={place} class="lane" style={{ height: `${height}px` }} data-lanes={lanes} />
}

/** Each lane on a scale of its own, of one core at least: its highest value is in the gutter. */
function draw(canvas: HTMLCanvasElement): void {
  const tile = current()
  const width = pixels.value
  const range = view.value
  const lanes = tile?.data.lanes ?? []
  const context = prepare(canvas, width, Math.max(1, lanes.length) * LANE + 18)
  if (!tile) return
  lanes.forEach((lane, row) => {
    const top = Math.max(valueOf(tile, lane, undefined) ?? 0, 1)
    const base = 18 + (row + 1) * LANE - 2
    context.fillStyle = colour('line')
    context.fillRect(0, base + 0.5, width, 0.5)
    context.fillStyle = colour('line-1')
    lane.values.forEach((value, column) => {
      if (!value) return
      const edge = (at: number) =>
        Math.floor(pixelAt(range, width, tile.range.from + at * tile.columnMs))
      const [from, to] = [edge(column), edge(column + 1)]
      if (to < 0 || from > width) return
      const high = Math.max(0.5, (value / top) * (LANE - 4))
      context.fillRect(from, base - high, Math.max(1, to - from), high)
    })
  })
}
