import { expect, test } from 'vitest'
import { takeEvents } from './stream'

test('whole events are taken, the rest waits', () => {
  const { events, rest } = takeEvents('event: progress\ndata: {"done":1}\n\nevent: result\nda')
  expect(events).toEqual([{ event: 'progress', data: '{"done":1}' }])
  expect(rest).toBe('event: result\nda')
})

test('comments are heartbeats, lines of data belong together, CRLF is a line end', () => {
  const { events } = takeEvents(': still here\n\nevent: result\r\ndata: a\r\ndata: b\r\n\r\n')
  expect(events).toEqual([{ event: 'result', data: 'a\nb' }])
})
