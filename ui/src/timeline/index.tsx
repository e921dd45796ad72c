/** The timeline: a ruler, the tracks, and what lies over them. */
import { useEffect, useRef } from 'preact/hooks'
import { get, revived, type Failure } from '../api'
import { view } from '../state'
import { coreState, coreTiles } from './cores'
import { eventsNear, eventTiles } from './events'
import { pressed } from './keys'
import { EventLane, eventsSeen, LANE_HEIGHT, LaneGutter } from './lane'
import { peggedRuns } from './lines'
import { AverageTrack, LineTrack } from './linetrack'
import { Overlay } from './overlay'
import { bounds, pixels } from './plot'
import { spanAround, watchPointer } from './pointer'
import { ProcessTrack } from './processes'
import { Ruler } from './ruler'
import { fit, timeAt } from './scale'
import { lineAt, Strip, StripGutter } from './strip'
import { Summary } from './summary'
import { best } from './tiles'
import { Tip } from './tip'
import { Toolbar } from './toolbar'
import { lineInfos, shown, type LineInfo, type Track } from './tracks'
import { width, type Range } from '../range'
import './timeline.css'

const LABEL =
  'Timeline. Left and right pan, plus and minus zoom, up and down walk through the cores, ' +
  'n and p go to the next and previous event, question mark lists all keys.'

export function Timeline() {
  useTiles()
  return (
    <section class="timeline" aria-label="Timeline of the recording">
      <Toolbar />
      <Plots />
      <Tip />
    </section>
  )
}

/** Ask for what the tracks show, for as long as they are shown. */
function useTiles(): void {
  useEffect(() => {
    const seen = () => ({ view: view.value, pixels: pixels.value, bounds: bounds() })
    const stops = [
      coreTiles.keep(() => ({ ...seen(), key: coreState.value })),
      eventTiles.keep(() => ({ ...seen(), key: '' })),
      revived.subscribe(() => void readLineInfos()),
    ]
    return () => stops.forEach((stop) => stop())
  }, [])
}

async function readLineInfos(): Promise<void> {
  try {
    lineInfos.value = await get<LineInfo[]>('/api/tracks')
  } catch {
    // the banner says so; asked again when the server is back
  }
}

function Plots() {
  const plots = useRef<HTMLDivElement>(null)
  const first = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const place = first.current as HTMLElement
    const observer = new ResizeObserver(() => (pixels.value = place.clientWidth))
    observer.observe(place)
    const left = () => place.getBoundingClientRect().left
    const stop = watchPointer(plots.current as HTMLElement, left, clicked)
    return () => {
      observer.disconnect()
      stop()
    }
  }, [])
  return (
    <div
      ref={plots}
      class="plots"
      role="application"
      aria-label={LABEL}
      aria-describedby="timeline-summary"
      tabIndex={0}
      onKeyDown={(event) => {
        if (event.target === event.currentTarget && pressed(event)) event.preventDefault()
      }}
    >
      <div class="track" data-track="ruler">
        <div class="gutter" />
        <div class="plot" ref={first}>
          <Ruler />
        </div>
      </div>
      {shown.value.map((track) => (
        <div class="track" key={track.id} data-track={track.id}>
          <TrackRow track={track} />
        </div>
      ))}
      <Overlay />
      <Summary />
    </div>
  )
}

function TrackRow({ track }: { track: Track }) {
  if (track.id === 'cores') {
    return (
      <Row
        title="Cores"
        gutter={<StripGutter />}
        plot={<Strip />}
        error={coreTiles.error.value}
        reading={coreTiles.list.value.at(-1)?.partial === true}
      />
    )
  }
  if (track.id === 'events') {
    return (
      <Row
        title="Events"
        gutter={<LaneGutter />}
        plot={<EventLane />}
        error={eventTiles.error.value}
      />
    )
  }
  if (track.id === 'average') return <AverageTrack />
  if (track.id === 'processes') return <ProcessTrack />
  return <LineTrack track={track} />
}

type RowProps = {
  title: string
  gutter: preact.ComponentChild
  plot: preact.ComponentChild
  error: Failure | null
  /** the server has not read all of it yet */
  reading?: boolean
}

function Row({ title, gutter, plot, error, reading }: RowProps) {
  return (
    <>
      <div class="gutter">
        <h3>{title}</h3>
        {gutter}
      </div>
      <div class="plot">
        {plot}
        {reading && !error && <span class="track-note">reading the rest of the recording…</span>}
        {error && <span class="track-error">{error.message}</span>}
      </div>
    </>
  )
}

/** What a click selects: around an event, a core's pegged time, or around that place. */
function clicked(x: number, track: string, y: number): Range | null {
  const time = timeAt(view.peek(), pixels.peek(), x)
  if (track === 'events') {
    const lane = Math.floor(y / LANE_HEIGHT)
    const near = eventsNear(eventsSeen(), view.peek(), pixels.peek(), x, lane)
    return near[0] ? spanAround(near[0].time_ms) : null
  }
  return (track === 'cores' && peggedNear(x, y)) || spanAround(time)
}

const REACH_PIXELS = 3

/** The pegged time of the core under the pointer, if there is one at this place. */
function peggedNear(x: number, y: number): Range | null {
  const line = lineAt(y)
  const tile = best(coreTiles.list.peek(), view.peek(), pixels.peek())
  if (!line || !tile) return null
  const columnOf = (at: number) =>
    Math.floor((timeAt(view.peek(), pixels.peek(), at) - tile.range.from) / tile.columnMs)
  const [run] = peggedRuns(tile.data, [line], Infinity).filter(
    ({ from, to }) => from <= columnOf(x + REACH_PIXELS) && to > columnOf(x - REACH_PIXELS),
  )
  if (!run) return null
  const [from, to] = [run.from, run.to].map((column) => tile.range.from + column * tile.columnMs)
  const range = { from: from as number, to: to as number }
  const least = spanAround((range.from + range.to) / 2)
  return width(range) > width(least) ? fit(range, bounds()) : least
}
