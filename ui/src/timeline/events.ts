/** Events of the recording: fetched as tiles, sorted into lanes, found by pixel. */
import { get, query } from '../api'
import type { Range } from '../range'
import { pixelAt } from './scale'
import { Tiles } from './tiles'

export type NodeEvent = {
  time_ms: number
  kind: string
  title: string
  serious: boolean
  subject: string
  message: string
  cpu: number | null
}

export type Events = { events: NodeEvent[]; leftOff: number }

const MOST_EVENTS = 3000

export const eventTiles = new Tiles<Events>(async ({ range, columns }, signal) => {
  const params = { ...query(range), limit: MOST_EVENTS }
  const answer = await get<{ events: NodeEvent[]; left_off: number }>('/api/events', params, signal)
  answer.events.sort((a, b) => a.time_ms - b.time_ms)
  return {
    range,
    columnMs: (range.to - range.from) / columns,
    data: { events: answer.events, leftOff: answer.left_off },
  }
})

export const LANES = ['Network', 'Kernel', 'Services', 'Jobs, marks'] as const

const LANE_OF: [RegExp, number][] = [
  [/^(nic_|irq_)/, 0],
  [/^(unit_|container_|journal$)/, 2],
  [/^(job_|mark$|recorder_|source_|rate_|paused$|resumed$|frozen$|import$)/, 3],
]

/** The lane of a kind; what is not named is the kernel's. */
export function laneOf(kind: string): number {
  return LANE_OF.find(([pattern]) => pattern.test(kind))?.[1] ?? 1
}

/** What a person should see first in a crowd. */
export const isMark = (event: NodeEvent): boolean => event.kind === 'mark'

/** The events of a lane within some pixels of a place, the nearest serious ones first. */
export function eventsNear(
  events: NodeEvent[],
  view: Range,
  width: number,
  x: number,
  lane: number | null,
  reach = 6,
): NodeEvent[] {
  const away = (event: NodeEvent) => Math.abs(pixelAt(view, width, event.time_ms) - x)
  return events
    .filter((event) => (lane === null || laneOf(event.kind) === lane) && away(event) <= reach)
    .sort((a, b) => Number(b.serious) - Number(a.serious) || away(a) - away(b))
}

/** The next event after (or before) a time; serious ones alone if there are any. */
export function stepEvent(events: NodeEvent[], time: number, by: 1 | -1): NodeEvent | null {
  const serious = events.filter((event) => event.serious || isMark(event))
  const among = serious.length > 0 ? serious : events
  if (by > 0) return among.find((event) => event.time_ms > time) ?? null
  return among.findLast((event) => event.time_ms < time) ?? null
}
