/** Above the tracks: what is seen, what the strip shows, zoom, follow, tracks. */
import { helpOpen } from '../help'
import { follow, following, lookAtAll, recording, view } from '../state'
import { dark } from '../theme'
import { digitsFor, formatClock, formatDate, formatLength } from '../times'
import { coreState, STATES } from './cores'
import { gradientOf } from './lines'
import { zoomBy } from './keys'
import { TrackMenu } from './menu'
import { pixels, zone } from './plot'

const FOLLOW_MS = 600_000

export function Toolbar() {
  const known = recording.value
  return (
    <div class="toolbar">
      <h2>Timeline</h2>
      <Seen />
      <label class="coloured">
        cores by
        <select
          value={coreState.value}
          onChange={(event) => (coreState.value = event.currentTarget.value)}
        >
          {STATES.map((state) => (
            <option key={state}>{state}</option>
          ))}
        </select>
      </label>
      <span class="ramp" aria-hidden="true">
        0 <i style={{ background: gradientOf(dark.value) }} /> 100 %
      </span>
      <span class="space" />
      {known?.live && (
        <button
          class="follow"
          aria-pressed={following.value}
          onClick={() => (following.value ? (following.value = false) : follow(spanToFollow()))}
          title="Move on with the recording while it grows"
        >
          <i aria-hidden="true" /> Live
        </button>
      )}
      <div class="joined" role="group" aria-label="Zoom">
        <button class="icon" onClick={() => zoomBy(1.6)} aria-label="Zoom out" title="Zoom out (−)">
          −
        </button>
        <button class="icon" onClick={() => zoomBy(0.625)} aria-label="Zoom in" title="Zoom in (+)">
          +
        </button>
        <button onClick={lookAtAll} title="The whole recording (a)">
          All
        </button>
      </div>
      <button
        onClick={() => (zone.value = zone.value === 'utc' ? 'local' : 'utc')}
        title="Show times in UTC or in your own zone"
        aria-label={`Times are in ${zone.value === 'utc' ? 'UTC' : 'your zone'}; change`}
      >
        {zone.value === 'utc' ? 'UTC' : 'Local'}
      </button>
      <TrackMenu />
      <button
        class="quiet icon"
        onClick={() => (helpOpen.value = true)}
        aria-label="Keys"
        title="Keys (?)"
      >
        ?
      </button>
    </div>
  )
}

/** While everything is seen, everything goes on being seen. */
function spanToFollow(): number {
  const { from, to } = view.peek()
  return Math.min(to - from, FOLLOW_MS)
}

function Seen() {
  const { from, to } = view.value
  const digits = Math.min(3, digitsFor((to - from) / Math.max(1, pixels.value)))
  const sameDay = formatDate(from, zone.value) === formatDate(to, zone.value)
  return (
    <span class="seen mono" data-from={from} data-to={to}>
      {formatDate(from, zone.value)} {formatClock(from, zone.value, digits)} –{' '}
      {sameDay ? '' : `${formatDate(to, zone.value)} `}
      {formatClock(to, zone.value, digits)} <span class="muted">({formatLength(to - from)})</span>
    </span>
  )
}
