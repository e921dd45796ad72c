/** The timeline: a ruler, the tracks, and what lies over them. */
import { useEffect, useRef } from 'preact/hooks'
import { get, revived, type Failure } from '../api'
import { view } from '../state'
import { coreState, coreTiles } from './cores'
import { columnAt, peakAt } from './shares'
import { eventsNear, eventTiles } from './events'
import { pressed } from './keys'
import { EventLane, eventsSeen, LANE_HEIGHT, LaneGutter } from './lane'
import { AverageTrack, LineTrack } from './linetrack'
import { Overlay } from './overlay'
import { bounds, pixels } from './plot'
import { spanAround, watchPointer } from './pointer'
import { Ruler } from './ruler'
import { timeAt } from './scale'
import { lineAt, Strip, StripGutter } from './strip'
import { Summary } from './summary'
import { best } from './tiles'
import { Tip } from './tip'
import { Toolbar } from './toolbar'
import { lineInfos, shown, type LineInfo, type Track } from './tracks'
import type { Range } from '../range'
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
      <Row title="Cores" gutter={<StripGutter />} plot={<Strip />} error={coreTiles.error.value} />
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
  return <LineTrack track={track} />
}

type RowProps = {
  title: string
  gutter: preact.ComponentChild
  plot: preact.ComponentChild
  error: Failure | null
}

function Row({ title, gutter, plot, error }: RowProps) {
  return (
    <>
      <div class="gutter">
        <h3>{title}</h3>
        {gutter}
      </div>
      <div class="plot">
        {plot}
        {error && <span class="track-error">{error.message}</span>}
      </div>
    </>
  )
}

/** What a click selects: around an event, or around the peak of a core nearby. */
function clicked(x: number, track: string, y: number): Range | null {
  const time = timeAt(view.peek(), pixels.peek(), x)
  if (track === 'events') {
    const lane = Math.floor(y / LANE_HEIGHT)
    const near = eventsNear(eventsSeen(), view.peek(), pixels.peek(), x, lane)
    return near[0] ? spanAround(near[0].time_ms) : null
  }
  return spanAround(track === 'cores' ? peakNear(time, x, y) : time)
}

/** The middle of the highest column of the core under the pointer, three pixels around. */
function peakNear(time: number, x: number, y: number): number {
  const line = lineAt(y)
  const tile = best(coreTiles.list.peek(), view.peek(), pixels.peek())
  if (!line || !tile) return time
  let found = { time, peak: -1 }
  for (const by of [0, -1, 1, -2, 2, -3, 3]) {
    const column = columnAt(tile, timeAt(view.peek(), pixels.peek(), x + by))
    const peak = column < 0 ? null : peakAt(tile.data, line.rows, column)
    if (peak !== null && peak > found.peak + 0.02) {
      found = { time: tile.range.from + (column + 0.5) * tile.columnMs, peak }
    }
  }
  return tile.columnMs < (view.peek().to - view.peek().from) / pixels.peek() / 4 ? time : found.time
}
