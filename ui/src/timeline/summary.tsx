/** The timeline in words, for those who do not see it. */
import { recording, view } from '../state'
import { formatLength, formatTime } from '../times'
import { coreState, coreTiles } from './cores'
import { hottest } from './shares'
import { eventsSeen } from './lane'
import { PEGGED } from './lines'
import { pixels, zone } from './plot'
import { isWhole } from './overlay'
import { best } from './tiles'
import { formatShare } from './values'

export function Summary() {
  const { from, to } = view.value
  const events = eventsSeen().filter((event) => event.time_ms >= from && event.time_ms < to)
  const serious = events.filter((event) => event.serious).length
  const gaps =
    recording.value?.gaps.filter((gap) => isWhole(gap) && gap.to_ms > from && gap.from_ms < to) ??
    []
  return (
    <p id="timeline-summary" class="unseen">
      {formatTime(from, zone.value)} to {formatTime(to, zone.value)}, {formatLength(to - from)}.{' '}
      {cores()} {events.length} events, {serious} of them serious. {gaps.length} gaps.
    </p>
  )
}

function cores(): string {
  const tile = best(coreTiles.list.value, view.value, pixels.value)
  if (!tile) return ''
  return hottest(tile, view.value, PEGGED, 3)
    .map(({ cpu, peak }) => `Core ${cpu} at most ${formatShare(peak / 254)} ${coreState.value}.`)
    .join(' ')
}
