/** What `/api/diagnosis` answers: `nodescope diagnose --json` with times in milliseconds. */
import type { Filters, Mode } from '../address'
import type { Range } from '../range'

export type Look = {
  from_ms: number
  to_ms: number
  cpu?: string | number | null
  pid?: string | number | null
  comm?: string | null
  cgroup?: string | null
  frame?: string | null
  mode?: 'user' | 'kernel' | null
  /** the function that the flame graph highlights, or the row that the node facts mark */
  marked_frame?: string
  row?: string
  view: 'timeline' | 'heatmap' | 'flame' | 'facts' | 'events'
}

export type Symptom = {
  kind: string
  time_ms: number
  subject: string
  statement: string
  cpu: number | null
  look: Look
}

export type Link = {
  kind: string
  subject: string
  statement: string
  strength: number
  show: string
  look?: Look | null
}

export type Step = { statement: string; command: string | null }

export type Chain = {
  confidence: number
  root: { kind: string; name: string }
  /** the root is where it happened, and not known to be the cause */
  place?: boolean
  mechanism: string | null
  /** what the mechanism means */
  meaning: string | null
  /** commands that look for it elsewhere, and what they are as views */
  check: string[]
  check_views: { machine?: boolean }[]
  links: Link[]
  weakest: string
  refute: string
  arithmetic: string | null
  steps: Step[]
  fix_steps: Step[]
}

export type Missing = { what: string; consequence: string; hint: string }

export type Finding = {
  symptom: Symptom
  also: Symptom[]
  repeats_ms?: number[]
  recurring: string[]
  hidden: string | null
  /** where the explanation ends, if it ends before a cause */
  ends: Missing | null
  /** incidents of the same kind that were not followed */
  unfollowed: number
  chains: Chain[]
  ruled_out: { name: string; statement: string }[]
}

/** Something that lasts: it will harm, or already wastes. */
export type Condition = {
  kind: string
  owner: { kind: string; name: string }
  severity: 'critical' | 'warning'
  /** when it began, as ISO 8601; null where that was not recorded */
  since: string | null
  statement: string
  /** how it moves, in words; empty where that is not known */
  trend: string
  steps: Step[]
  show: string
  look?: Look | null
}

export type Document = {
  from_ms: number
  to_ms: number
  findings: Finding[]
  conditions: Condition[]
  missing: Missing[]
}

/** The document without the missing things that a finding names itself: each is told once. */
export function tellOnce(document: Document): Document {
  const told = new Set(document.findings.map(({ ends }) => ends?.what))
  return { ...document, missing: document.missing.filter(({ what }) => !told.has(what)) }
}

/** When a condition was seen first, and how it moves, as far as that is known. */
export function sinceOf(condition: Condition, clock: (time: number) => string): string {
  const since =
    condition.since === null ? '' : `seen first at ${clock(Date.parse(condition.since))}`
  return [since, condition.trend].filter(Boolean).join(' · ')
}

/**
 * The seconds that a page opens on: those of the first finding's samples (the pegged core's
 * seconds), else around its symptom. Null where nothing was found.
 */
export function openingOf(document: Document): Range | null {
  const [first] = document.findings
  if (!first) return null
  const links = first.chains[0]?.links ?? []
  const sampled = links.find((link) => link.look?.view === 'flame')?.look
  const look = sampled ?? first.symptom.look
  return { from: look.from_ms, to: look.to_ms }
}

/** Where a piece of evidence is to be seen; filters of before do not stay. */
export function target(look: Look): { range: Range; filters: Filters; mode?: Mode } {
  const filters: Filters = {}
  for (const name of ['cpu', 'pid', 'comm', 'cgroup', 'frame'] as const) {
    const value = look[name]
    if (value !== undefined && value !== null && value !== '') filters[name] = String(value)
  }
  if (look.mode) filters.mode = look.mode
  const range = { from: look.from_ms, to: look.to_ms }
  const mode = MODE_OF[look.view]
  return mode ? { range, filters, mode } : { range, filters }
}

// the timeline, its events and the heatmap are always in sight, whatever the tab
const MODE_OF: Partial<Record<Look['view'], Mode>> = { flame: 'flame', facts: 'facts' }

// the diagnosis does not trust itself further (finding.py)
const SURE = 6

/** A strength in nats as odds: how much likelier the evidence is if the link holds. */
export function odds(strength: number): string {
  const ratio = Math.exp(Math.min(Math.abs(strength), SURE))
  const shown = ratio >= 10 ? Math.round(ratio) : Math.round(ratio * 10) / 10
  return strength < 0 ? `1 : ${shown}` : `${shown} : 1`
}

/** How surely, in a word beside the figure. */
export function surely(confidence: number): 'likely' | 'possible' | 'weak' {
  if (confidence >= 0.6) return 'likely'
  return confidence >= 0.3 ? 'possible' : 'weak'
}

/** Whether a chain goes beyond what was reported: only then it names a cause. */
export const explains = (chain: Chain | undefined): boolean =>
  chain !== undefined && chain.root.kind !== 'event' && chain.root.kind !== 'job'

/** One text that tells two answers' findings apart, for lists. */
export const keyOf = (finding: Finding): string =>
  `${finding.symptom.kind} ${finding.symptom.subject} ${finding.symptom.time_ms}`
