/** The tracks of lines: what the server draws (folded while quiet), and the node's average. */
import { computed } from '@preact/signals'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { get, query } from '../api'
import { view } from '../state'
import { coreState, coreTiles } from './cores'
import { highestByColumn, type Cores } from './shares'
import { LinePlot, type LineData, type Series } from './line'
import { bounds, hover, pixels } from './plot'
import { isQuiet } from './quiet'
import { best, Tiles, type Tile } from './tiles'
import type { Track } from './tracks'
import { formatValue } from './values'

const TOKENS = ['line-1', 'line-2', 'line-3', 'line-4', 'line-5', 'line-6']
const HEIGHT = 44

type Answer = { from_ms: number; column_ms: number; most: (number | null)[] }

async function fetchLines(
  track: Track,
  wanted: { range: { from: number; to: number }; columns: number },
  signal: AbortSignal,
): Promise<Tile<LineData>> {
  const answers = await Promise.all(
    track.lines.map(({ name }) =>
      get<Answer>('/api/track', { ...query(wanted.range), name, columns: wanted.columns }, signal),
    ),
  )
  const first = answers[0]
  if (!first) throw new Error('a track of no lines')
  const { from_ms: from, column_ms: columnMs } = first
  const columns = Math.max(...answers.map((answer) => answer.most.length))
  return {
    range: { from, to: from + columns * columnMs },
    columnMs,
    data: { times: timesOf(from, columnMs, columns), values: answers.map((answer) => answer.most) },
  }
}

/** The start of each column. */
const timesOf = (from: number, columnMs: number, columns: number): number[] =>
  Array.from({ length: columns }, (_, at) => from + at * columnMs)

/** The values of all series at a time. */
function valuesAt(data: LineData, tile: Tile<unknown>, time: number): (number | null)[] {
  const column = Math.floor((time - tile.range.from) / tile.columnMs)
  return data.values.map((values) => values[column] ?? null)
}

/** Zombies, pressure, memory: whatever the recording has. */
export function LineTrack({ track }: { track: Track }) {
  const tiles = useMemo(
    () => new Tiles<LineData>((wanted, signal) => fetchLines(track, wanted, signal), 200),
    [track.id],
  )
  useEffect(
    () => tiles.keep(() => ({ view: view.value, pixels: pixels.value, bounds: bounds(), key: '' })),
    [tiles],
  )
  const series = useMemo(
    () =>
      track.lines.map(({ title }, at) => ({
        label: title,
        token: TOKENS[at % TOKENS.length] ?? 'line-1',
        fill: at === 0,
      })),
    [track],
  )
  const unit = track.lines[0]?.unit ?? ''
  const current = () => best(tiles.list.value, view.value, pixels.value)
  const [open, setOpen] = useOpen(current(), unit)
  const title = (
    <h3>
      <button class="fold" aria-expanded={open} onClick={() => setOpen(!open)}>
        {track.title}
      </button>
    </h3>
  )
  if (!open) {
    return (
      <>
        <div class="gutter folded">{title}</div>
        <div class="plot folded" data-error={tiles.error.value?.message}>
          <Legend series={series} unit={unit} current={current} />
        </div>
      </>
    )
  }
  return (
    <>
      <div class="gutter">
        {title}
        <Legend series={series} unit={unit} current={current} />
      </div>
      <div class="plot" data-error={tiles.error.value?.message}>
        <LinePlot
          series={series}
          height={Math.max(HEIGHT, 14 + 13 * series.length)}
          data={() => current()?.data ?? null}
        />
      </div>
    </>
  )
}

/** Whether a track is unfolded: as somebody chose, else unless what was read first is quiet. */
function useOpen(tile: Tile<LineData> | null, unit: string): [boolean, (open: boolean) => void] {
  const [chosen, setChosen] = useState<boolean | null>(null)
  const first = useRef<boolean | null>(null)
  if (tile && first.current === null) first.current = !isQuiet(tile.data.values, unit)
  return [chosen ?? first.current ?? false, setChosen]
}

const averages = new WeakMap<Cores, LineData>()

function averageOf(tile: Tile<Cores>): LineData {
  let data = averages.get(tile.data)
  if (!data) {
    const times = timesOf(tile.range.from, tile.columnMs, tile.data.columns)
    data = { times, values: [highestByColumn(tile.data), tile.data.average] }
    averages.set(tile.data, data)
  }
  return data
}

const AVERAGE: Series[] = [
  { label: 'busiest core', token: 'kernel' },
  { label: 'average of all', token: 'line-1', fill: true },
]

const currentCores = computed(() => {
  const tile = best(coreTiles.list.value, view.value, pixels.value)
  return tile && { ...tile, data: averageOf(tile) }
})

/** The average of all cores, under the busiest of them: what it hides. */
export function AverageTrack() {
  return (
    <>
      <div class="gutter">
        <h3>Node average, {coreState.value}</h3>
        <Legend series={AVERAGE} unit="share of time" current={() => currentCores.value} />
      </div>
      <div class="plot">
        <LinePlot
          series={AVERAGE}
          height={HEIGHT}
          data={() => currentCores.value?.data ?? null}
          top={1.02}
        />
      </div>
    </>
  )
}

/** The names of the lines in their colours, with their values under the pointer. */
function Legend({
  series,
  unit,
  current,
}: {
  series: Series[]
  unit: string
  current: () => Tile<LineData> | null
}) {
  const at = hover.value?.time
  const tile = current()
  const values = at !== undefined && tile ? valuesAt(tile.data, tile, at) : []
  return (
    <ul class="series">
      {series.map(({ label, token }, index) => (
        <li key={label}>
          <i style={{ background: `var(--${token})` }} />
          <span title={label}>{label}</span>
          <b>
            {formatValue(at === undefined ? peakOf(tile, index) : (values[index] ?? null), unit)}
          </b>
        </li>
      ))}
    </ul>
  )
}

/** The highest value in view. */
function peakOf(tile: Tile<LineData> | null, index: number): number | null {
  if (!tile) return null
  const { from, to } = view.value
  const values = tile.data.values[index] ?? []
  const first = Math.max(0, Math.floor((from - tile.range.from) / tile.columnMs))
  const last = Math.min(values.length, Math.ceil((to - tile.range.from) / tile.columnMs))
  let most: number | null = null
  for (let column = first; column < last; column++) {
    const value = values[column]
    if (value !== null && value !== undefined && (most === null || value > most)) most = value
  }
  return most
}
