/** What changed against the baseline: the rows of the table, and words for them. */

import { count } from '../flame/words'
import { formatLength, formatTime, type Zone } from '../times'

/** The part of the baseline that lies in the recording, and how much of it was recorded. */
export type Recorded = { from_ms: number; to_ms: number; recorded_ms: number }

/** When the baseline begins and how long it is; less than its length where there are gaps. */
export function sayBaseline({ from_ms, to_ms, recorded_ms }: Recorded, zone: Zone): string {
  if (recorded_ms <= 0) return 'nothing was recorded then'
  const length = formatLength(to_ms - from_ms)
  const gaps = recorded_ms < to_ms - from_ms ? ` (${formatLength(recorded_ms)} recorded)` : ''
  return `${formatTime(from_ms, zone)}, ${length}${gaps}`
}

export type Status = 'new' | 'grown' | 'shrunk' | 'gone'

export interface Change {
  kind: string
  name: string
  window: number
  baseline: number
  ratio: number | null
  p: number | null
  q: number | null
  /** unknown: there is no baseline */
  status: Status | 'unknown'
  extreme: string
  flagged: boolean
  /** large, and in no window of the baseline, yet not certain */
  stands_out: boolean
  window_share: number
  baseline_share: number
}

/** A sign beside the word, so that nothing hangs on colours. */
export const SIGNS: Record<Status | 'same', string> = {
  new: '✚',
  grown: '▲',
  shrunk: '▼',
  gone: '✕',
  same: '≈',
}

/** Where a share stands: what was not there is new, however little it is. */
export function statusOf(now: number, before: number): Status | 'same' {
  if (now > 0 && before <= 0) return 'new'
  if (now <= 0 && before > 0) return 'gone'
  if (now > before * 1.1) return 'grown'
  return now < before / 1.1 ? 'shrunk' : 'same'
}

/** What the table shows, in a sentence. */
export function headline(rows: Pick<Change, 'q' | 'flagged' | 'stands_out'>[]): string {
  const flagged = rows.filter((row) => row.flagged).length
  if (flagged > 0) return `${count(flagged)} changed beyond what the baseline does by itself`
  if (rows.length > 0 && rows.every((row) => row.q === null))
    return 'There is nothing to compare with: this is what ran'
  return rows.some((row) => row.stands_out)
    ? 'Nothing is certain; the largest differences are in no window of the baseline'
    : 'Nothing differs beyond what the baseline does by itself'
}

/** A chance as people write it. */
export function odds(q: number | null): string {
  if (q === null) return '–'
  return q < 0.001 ? '< 0.001' : q.toFixed(3)
}

/** How surely something changed, in words. */
export function surely({ q, extreme }: { q: number | null; extreme: string }): string {
  const seen = extreme.endsWith(' of 0') ? '' : `${extreme} baseline windows had as much`
  if (q === null) return seen || 'nothing to compare with'
  const chance = q < 0.001 ? `q ${odds(q)}` : `q = ${odds(q)}`
  return [chance, seen].filter(Boolean).join(', ')
}

/** The rows by how a frame of the flame graph would be called there. */
export function byName(rows: readonly Change[]): Map<string, Change> {
  return new Map(rows.map((row) => [`${row.kind} ${row.name}`, row]))
}

/**
 * The row about a frame, if it was tested: a process by its name, a function in threads of
 * that name, or a kernel function wherever it ran.
 */
export function rowOf(
  rows: ReadonlyMap<string, Change>,
  path: readonly string[],
): Change | undefined {
  const [comm] = path
  const name = path.at(-1)
  if (comm === undefined || name === undefined) return undefined
  if (path.length === 1) return rows.get(`comm ${comm}`)
  return rows.get(`function ${comm};${name}`) ?? rows.get(`kernel ${name}`)
}
