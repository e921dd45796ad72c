import { expect, test } from 'vitest'
import { eventsNear, laneOf, stepEvent, type NodeEvent } from './events'

const event = (time_ms: number, kind: string, serious = false): NodeEvent => ({
  time_ms,
  kind,
  title: kind,
  serious,
  subject: '',
  message: '',
  cpu: null,
})
const events = [
  event(10, 'unit_exit'),
  event(20, 'nic_reset', true),
  event(21, 'nic_reset_done'),
  event(90, 'mark'),
]
const view = { from: 0, to: 100 }

test('every kind has a lane', () => {
  expect(
    ['nic_reset', 'irq_moved', 'soft_lockup', 'oom_kill', 'unit_loop', 'job_failed', 'new'].map(
      laneOf,
    ),
  ).toEqual([0, 0, 1, 1, 2, 3, 1])
})

test('near a place: the serious first', () => {
  expect(eventsNear(events, view, 100, 21, 0).map((each) => each.kind)).toEqual([
    'nic_reset',
    'nic_reset_done',
  ])
  expect(eventsNear(events, view, 100, 21, 2)).toEqual([])
  expect(eventsNear(events, view, 100, 50, null)).toEqual([])
})

test('steps go from one that matters to the next', () => {
  expect(stepEvent(events, 0, 1)?.kind).toBe('nic_reset')
  expect(stepEvent(events, 20, 1)?.kind).toBe('mark')
  expect(stepEvent(events, 90, 1)).toBeNull()
  expect(stepEvent(events, 90, -1)?.kind).toBe('nic_reset')
  expect(stepEvent([event(10, 'unit_exit')], 0, 1)?.kind).toBe('unit_exit')
})
