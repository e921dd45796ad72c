/** What is under the pointer, in words. */
import type { ComponentChildren } from 'preact'
import { recording, view } from '../state'
import { digitsFor, formatLength, formatMoment, formatTime } from '../times'
import { coreState, coreTiles } from './cores'
import { columnAt, peakAt } from './shares'
import { eventsNear, type NodeEvent } from './events'
import { eventsSeen, LANE_HEIGHT } from './lane'
import { hover, pixels, zone, type Hover } from './plot'
import { dragged } from './pointer'
import { isWhole } from './overlay'
import { pixelAt } from './scale'
import { lineAt } from './strip'
import { best } from './tiles'
import { formatShare } from './values'

const WIDE = 420
const MOST_LISTED = 6

export function Tip() {
  const at = hover.value
  if (!at) return null
  const perPixel = (view.value.to - view.value.from) / pixels.value
  const right = at.clientX + 16 + WIDE > innerWidth
  return (
    <div
      class="tooltip timeline-tip"
      role="tooltip"
      style={{
        top: `${at.clientY + 18}px`,
        left: right ? 'auto' : `${at.clientX + 16}px`,
        right: right ? `${innerWidth - at.clientX + 12}px` : 'auto',
      }}
    >
      <div class="mono">{formatTime(at.time, zone.value, digitsFor(perPixel))}</div>
      {dragged.value && <div>selecting {formatLength(dragged.value.to - dragged.value.from)}</div>}
      {spansAt(at)}
      {at.track === 'cores' && coreAt(at)}
      {at.track === 'events' && listed(at)}
    </div>
  )
}

function coreAt(at: Hover): ComponentChildren {
  const line = lineAt(at.y)
  const tile = best(coreTiles.list.value, view.value, pixels.value)
  if (!line || !tile) return null
  const column = columnAt(tile, at.time)
  const peak = column < 0 ? null : peakAt(tile.data, line.rows, column)
  const names =
    line.cpus.length > 1 ? `cores ${line.cpus[0]}–${line.cpus.at(-1)}` : `core ${line.cpus[0]}`
  if (peak === null) return <div>{names}: nothing recorded</div>
  const span = tile.columnMs > 1500 ? ` (peak of ${formatLength(tile.columnMs)})` : ''
  return (
    <div>
      <b>{names}</b>: {formatShare(peak)} {coreState.value}
      <span class="muted">{span}</span>
    </div>
  )
}

function listed(at: Hover): ComponentChildren {
  const lane = Math.floor(at.y / LANE_HEIGHT)
  const near = eventsNear(eventsSeen(), view.value, pixels.value, at.x, lane)
  if (near.length === 0) return null
  return (
    <ul class="listed">
      {near.slice(0, MOST_LISTED).map((event, index) => (
        <li key={index} class={event.serious ? 'serious' : ''}>
          {oneLine(event)}
        </li>
      ))}
      {near.length > MOST_LISTED && <li class="muted">and {near.length - MOST_LISTED} more</li>}
    </ul>
  )
}

function oneLine(event: NodeEvent): ComponentChildren {
  return (
    <>
      <span class="mono">{formatMoment(event.time_ms, zone.value, 3)}</span> <b>{event.subject}</b>{' '}
      {event.title}
      {event.message && <div class="muted message">{event.message}</div>}
    </>
  )
}

/** Gaps and frozen ranges at this time. */
function spansAt(at: Hover): ComponentChildren {
  const reach = (range: { from_ms: number; to_ms: number }) =>
    pixelAt(view.value, pixels.value, range.from_ms) <= at.x + 3 &&
    pixelAt(view.value, pixels.value, range.to_ms) >= at.x - 3
  const { gaps = [], frozen = [] } = recording.value ?? {}
  const near = gaps.filter((gap) => reach(gap) && (isWhole(gap) || at.track === 'ruler'))
  return (
    <>
      {near.slice(0, MOST_LISTED).map((gap, index) => (
        <div key={index} class="gap">
          not recorded for {formatLength(gap.to_ms - gap.from_ms)}
          {isWhole(gap) ? '' : ` (${gap.source})`}: {gap.reason}
        </div>
      ))}
      {at.track === 'ruler' &&
        frozen.filter(reach).map((each, index) => (
          <div key={index}>
            frozen, {formatLength(each.to_ms - each.from_ms)}: {each.reason}
          </div>
        ))}
    </>
  )
}
