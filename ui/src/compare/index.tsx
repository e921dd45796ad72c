/** The selection against its baseline: a differential flame graph and what changed. */

import { useMemo } from 'preact/hooks'
import './compare.css'
import { get, query, useQuery, type Params } from '../api'
import { frameActions, groupFilter } from '../flame/actions'
import { change, changePaint } from '../flame/colour'
import { useFlame } from '../flame/data'
import { Empty, Loading, Trouble } from '../flame/feedback'
import { Graph } from '../flame/graph'
import { compile, find } from '../flame/search'
import { SearchBox } from '../flame/searchbox'
import { BETWEEN, search, zoom } from '../flame/settings'
import type { Fact } from '../flame/tip'
import { pathOf, type Frame, type Tree } from '../flame/tree'
import { count, factor, percent, visible } from '../flame/words'
import { filters, selection } from '../state'
import { dark } from '../theme'
import { zone } from '../timeline/plot'
import {
  byName,
  odds,
  rowOf,
  sayBaseline,
  SIGNS,
  statusOf,
  surely,
  type Change,
  type Recorded,
} from './changes'
import { Changes } from './rows'
import { baseline, setBaseline, widths } from './settings'

interface Compared {
  rows: Change[]
  baseline: Recorded
  notes?: string[]
}

const byBase = (frame: Frame): number => frame.base ?? 0

export function Compare() {
  const base = (): Params => {
    const range = baseline.value
    return range ? { base_from_ms: range.from, base_to_ms: range.to } : {}
  }
  const answer = useQuery<Compared>((signal) =>
    get('/api/compare', { ...query(selection.value, filters.value), ...base() }, signal),
  )
  const before = widths.value === 'baseline'
  const flame = useFlame('/api/compare/flame', base, before ? byBase : undefined)
  const rows = useMemo(() => byName(answer.data?.rows ?? []), [answer.data])
  return (
    <section class="compare" aria-label="Compare">
      <Loading on={answer.loading || flame.loading} />
      <Baseline compared={answer.data} />
      {answer.error && <Trouble failure={answer.error} />}
      {answer.data?.notes?.map((note) => (
        <p class="compare-note muted" key={note}>
          {note}
        </p>
      ))}
      <Differential flame={flame} rows={rows} before={before} />
      {answer.data && <Changes rows={answer.data.rows} />}
      {!answer.data && !answer.error && <Empty>Comparing with the baseline…</Empty>}
    </section>
  )
}

function Baseline({ compared }: { compared: Compared | null }) {
  const said = compared ? sayBaseline(compared.baseline, zone.value) : '…'
  return (
    <div class="tools">
      <span>
        Baseline: <span class="compare-base">{said}</span>{' '}
        {baseline.value ? '(chosen)' : '(the time before the selection)'}
      </span>
      <button onClick={() => setBaseline(selection.peek())}>Take the selection as baseline</button>
      <button disabled={!baseline.value} onClick={() => setBaseline(null)}>
        Automatic
      </button>
    </div>
  )
}

interface Shown {
  flame: ReturnType<typeof useFlame>
  rows: Map<string, Change>
  before: boolean
}

function Differential({ flame, rows, before }: Shown) {
  const { answer, tree, zoomed, unfilled } = flame
  const theme = dark.value ? 'dark' : 'light'
  const totals = totalsOf(tree)
  const test = useMemo(() => compile(search.value), [search.value])
  const found = useMemo(
    () => (tree && typeof test !== 'string' && search.value.trim() ? find(tree, test) : null),
    [tree, test],
  )
  const share = found && tree ? found.samples / Math.max(tree.value[0] ?? 0, 1) : 0
  const said = found ? `${percent(share)} in ${count(found.matches)} frames` : ''
  const paint = useMemo(
    () => (frame: Frame) => changePaint(moved(frame, totals), theme),
    [theme, totals.now, totals.before],
  )
  return (
    <>
      <div class="tools">
        <div role="group" aria-label="Widths" class="joined">
          <button aria-pressed={!before} onClick={() => (widths.value = 'window')}>
            Widths: selection
          </button>
          <button aria-pressed={before} onClick={() => (widths.value = 'baseline')}>
            Widths: baseline
          </button>
        </div>
        <button disabled={zoomed === 0} onClick={() => (zoom.value = '')}>
          Reset zoom
        </button>
        <SearchBox label="Search frames" said={typeof test === 'string' ? test : said} />
        <span class="legend" aria-hidden="true">
          gone, less <i class="less-more" /> more, new
        </span>
      </div>
      {answer.error && <Trouble failure={answer.error} />}
      {unfilled && <Trouble failure={unfilled} />}
      {tree && (tree.value[0] ?? 0) > 0 && (
        <Graph
          label="Differential flame graph"
          tree={tree}
          zoomed={zoomed}
          found={found}
          paint={paint}
          describe={(at) => describe(tree, at, totals, rows)}
          summary={(at) => summary(tree, at, totals)}
          actions={(at) => actions(tree, at)}
          onZoom={(at) => (zoom.value = pathOf(tree, at).join(BETWEEN))}
        />
      )}
      {tree && (tree.value[0] ?? 0) === 0 && (
        <Empty>{before ? 'No samples in the baseline.' : 'No samples in the selection.'}</Empty>
      )}
    </>
  )
}

interface Totals {
  now: number
  before: number
}

function totalsOf(tree: Tree | null): Totals {
  const root = tree?.frame[0]
  return { now: Math.max(root?.value ?? 0, 1), before: root?.base ?? 0 }
}

const FAINT = 0.3 // what chance may have done is hinted at, no more

/** How far a frame moved; not at all where there is nothing to compare with. */
function moved(frame: Frame, totals: Totals): number {
  if (totals.before <= 0) return 0
  const by = change(frame.value / totals.now, shareBefore(frame, totals))
  return frame.status === 'same' ? by * FAINT : by
}

function actions(tree: Tree, at: number) {
  const frame = tree.frame[at] as Frame
  const go = { title: 'Zoom here', run: () => (zoom.value = pathOf(tree, at).join(BETWEEN)) }
  if (at === 0) return [go]
  return [go, ...frameActions(frame, tree.depth[at] === 1 ? groupFilter('comm', frame.name) : null)]
}

const shareBefore = (frame: Frame, { before }: Totals): number =>
  before > 0 ? (frame.base ?? 0) / before : 0

function said(frame: Frame, totals: Totals): string {
  if (totals.before <= 0) return 'nothing to compare with'
  const status = frame.status ?? statusOf(frame.value / totals.now, shareBefore(frame, totals))
  return `${SIGNS[status]} ${status}`
}

function summary(tree: Tree, at: number, totals: Totals): string {
  const frame = tree.frame[at] as Frame
  const now = percent(frame.value / totals.now)
  const was = percent(shareBefore(frame, totals))
  return `${visible(frame.name)} · ${now} instead of ${was} · ${said(frame, totals)}`
}

function describe(tree: Tree, at: number, totals: Totals, rows: Map<string, Change>): Fact[] {
  const frame = tree.frame[at] as Frame
  const base = frame.base ?? 0
  const shares = { now: frame.value / totals.now, before: shareBefore(frame, totals) }
  const facts: Fact[] = [
    { name: 'Selection', text: `${percent(shares.now)}`, note: `${count(frame.value)} samples` },
    {
      name: 'Baseline',
      text: `${percent(shares.before)}`,
      note: `${count(base)} samples in as long a time`,
    },
    { name: 'Change', text: said(frame, totals), note: factor(shares.now, shares.before) },
  ]
  const row = rowOf(rows, pathOf(tree, at))
  if (row) {
    facts.push({
      name: row.flagged ? 'Significant' : 'Not beyond',
      text: row.flagged ? surely(row) : 'what the baseline does by itself',
      note: row.flagged ? '' : surely(row),
    })
  }
  if (!row && frame.p !== undefined && totals.before > 0) {
    facts.push({ name: 'By chance', text: `p ${odds(frame.p)}`, note: 'if samples came evenly' })
  }
  if (frame.module) facts.push({ name: 'Module', text: visible(frame.module) })
  return facts
}
