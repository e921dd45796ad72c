import { expect, it } from 'vitest'
import {
  byName,
  headline,
  odds,
  rowOf,
  sayBaseline,
  statusOf,
  surely,
  type Change,
} from './changes'

const change = (kind: string, name: string): Change => ({
  kind,
  name,
  window: 650,
  baseline: 70,
  ratio: 9.3,
  p: 1e-9,
  q: 1e-8,
  status: 'grown',
  extreme: '0 of 360',
  flagged: true,
  stands_out: false,
  window_share: 0.065,
  baseline_share: 0.007,
})

it('knows where a share stands', () => {
  expect(statusOf(1, 0)).toBe('new')
  expect(statusOf(0, 1)).toBe('gone')
  expect(statusOf(2, 1)).toBe('grown')
  expect(statusOf(1, 2)).toBe('shrunk')
  expect(statusOf(1, 1.05)).toBe('same')
  expect(statusOf(0, 0)).toBe('same')
})

it('says how surely', () => {
  expect(surely(change('comm', 'x'))).toBe('q < 0.001, 0 of 360 baseline windows had as much')
  expect(surely({ q: 0.034, extreme: '3 of 360' })).toContain('q = 0.034')
  expect(surely({ q: null, extreme: '0 of 0' })).toBe('nothing to compare with')
})

it('finds the row of a frame', () => {
  const rows = byName([
    change('comm', 'kubelet'),
    change('function', 'kubelet;read'),
    change('kernel', 'mem_cgroup_iter'),
  ])
  expect(rowOf(rows, ['kubelet'])?.kind).toBe('comm')
  expect(rowOf(rows, ['kubelet', 'main', 'read'])?.kind).toBe('function')
  expect(rowOf(rows, ['bash', 'mem_cgroup_iter'])?.kind).toBe('kernel')
  expect(rowOf(rows, ['bash', 'read'])).toBeUndefined()
  expect(rowOf(rows, [])).toBeUndefined()
})

it('writes chances', () => {
  expect(odds(null)).toBe('–')
  expect(odds(1e-9)).toBe('< 0.001')
  expect(odds(0.034)).toBe('0.034')
})

it('says how long the baseline is, and how much of it was recorded', () => {
  const range = { from_ms: 1_000_000, to_ms: 1_004_000 }
  expect(sayBaseline({ ...range, recorded_ms: 4000 }, 'utc')).toBe('1970-01-01 00:16:40 UTC, 4 s')
  expect(sayBaseline({ ...range, recorded_ms: 1000 }, 'utc')).toContain('4 s (1 s recorded)')
  expect(sayBaseline({ ...range, recorded_ms: 0 }, 'utc')).toBe('nothing was recorded then')
})

it('does not say that nothing differs above a change that no baseline window had', () => {
  const row = { q: 0.3, flagged: false, stands_out: false }
  expect(headline([row])).toContain('Nothing differs')
  expect(headline([row, { ...row, stands_out: true }])).toContain('Nothing is certain')
  expect(headline([{ ...row, flagged: true }])).toContain('1 changed')
  expect(headline([{ ...row, q: null }])).toContain('nothing to compare with')
})
