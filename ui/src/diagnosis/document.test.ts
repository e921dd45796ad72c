import { expect, test } from 'vitest'
import {
  explains,
  odds,
  openingOf,
  sinceOf,
  surely,
  target,
  tellOnce,
  type Chain,
  type Condition,
  type Document,
} from './document'

test('a look becomes range, filters and tab; nulls are no filters', () => {
  const look = { from_ms: 1, to_ms: 2, cpu: 39, comm: null, frame: 'a|b', view: 'flame' } as const
  expect(target(look)).toEqual({
    range: { from: 1, to: 2 },
    filters: { cpu: '39', frame: 'a|b' },
    mode: 'flame',
  })
})

test('core 0 is a filter, and the timeline needs no tab', () => {
  const look = { from_ms: 1, to_ms: 2, cpu: 0, view: 'timeline' } as const
  expect(target(look)).toEqual({ range: { from: 1, to: 2 }, filters: { cpu: '0' } })
})

test('odds are read from nats and never surer than 400 to 1', () => {
  expect(odds(0)).toBe('1 : 1')
  expect(odds(3)).toBe('20 : 1')
  expect(odds(50)).toBe('403 : 1')
  expect(odds(-1)).toBe('1 : 2.7')
})

test('a confidence has a word', () => {
  expect([0.69, 0.4, 0.1].map(surely)).toEqual(['likely', 'possible', 'weak'])
})

test('what was reported is not its own cause', () => {
  const of = (kind: string) => ({ root: { kind, name: 'x' } }) as Chain
  expect(['event', 'job', 'core', 'unit'].map((kind) => explains(of(kind)))).toEqual([
    false,
    false,
    true,
    true,
  ])
  expect(explains(undefined)).toBe(false)
})

test('the page opens on the seconds of the first finding’s samples, else around its symptom', () => {
  const symptom = { look: { from_ms: 10, to_ms: 40, view: 'timeline' } }
  const links = [
    { look: { from_ms: 1, to_ms: 99, view: 'events' } },
    { look: { from_ms: 20, to_ms: 26, view: 'flame' } },
  ]
  const of = (...chains: object[]) =>
    ({
      findings: [
        { symptom, chains },
        { symptom, chains: [] },
      ],
    }) as unknown as Document
  expect(openingOf(of({ links }))).toEqual({ from: 20, to: 26 })
  expect(openingOf(of({ links: [links[0]] }))).toEqual({ from: 10, to: 40 })
  expect(openingOf(of())).toEqual({ from: 10, to: 40 })
  expect(openingOf({ findings: [] } as unknown as Document)).toBeNull()
})

test('a condition shows since when it lasts and how it moves, as far as known', () => {
  const of = (since: string | null, trend: string) => ({ since, trend }) as Condition
  const clock = (time: number) => `t${time}`
  expect(sinceOf(of('1970-01-01T00:00:01.000Z', 'growing'), clock)).toBe(
    'seen first at t1000 · growing',
  )
  expect(sinceOf(of(null, 'growing'), clock)).toBe('growing')
  expect(sinceOf(of(null, ''), clock)).toBe('')
})

test('what is missing is told once: with its finding, else below', () => {
  const missing = ['core time', 'samples'].map((what) => ({ what, consequence: '', hint: '' }))
  const document = { findings: [{ ends: missing[0] }, { ends: null }], missing }
  const told = tellOnce(document as unknown as Document)
  expect(told.missing.map(({ what }) => what)).toEqual(['samples'])
})
