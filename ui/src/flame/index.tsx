/** The flame graph of the selection. */

import { useMemo, useRef } from 'preact/hooks'
import './flame.css'
import { frameActions, groupFilter } from './actions'
import { plainPaint } from './colour'
import { useFlame } from './data'
import { Empty, Loading, Trouble } from './feedback'
import { Graph, type Brought } from './graph'
import { compile, find, same, widest, type Found } from './search'
import { SearchBox } from './searchbox'
import { BETWEEN, direction, inverted, merge, MERGES, search, sought, zoom } from './settings'
import type { Fact } from './tip'
import { hidden, pathOf, type Frame, type Tree } from './tree'
import { certainty, count, percent, visible } from './words'

export function Flame() {
  const { answer, tree, zoomed, loading, current, unfilled } = useFlame('/api/flame', () => ({
    merge: merge.value,
    inverted: inverted.value ? 1 : 0,
    width: Math.max(400, Math.min(innerWidth, 4000)),
  }))
  const test = useMemo(() => compile(search.value), [search.value])
  const found = useMemo(
    () => (tree && typeof test !== 'string' && search.value.trim() ? find(tree, test) : null),
    [tree, test],
  )
  const brought = useSought(current ? tree : null)
  const said = typeof test === 'string' ? test : sayFound(found, answer.data?.total ?? 0)
  return (
    <section class="flame" aria-label="Flame graph">
      <Loading on={loading} />
      <div class="tools">
        <label>
          Merge by{' '}
          <select value={merge.value} onChange={(event) => choose(event.currentTarget.value)}>
            {MERGES.map(({ value, title }) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
        </label>
        <button aria-pressed={inverted.value} onClick={turn}>
          Inverted
        </button>
        <button disabled={zoomed === 0} onClick={() => (zoom.value = '')}>
          Reset zoom
        </button>
        <SearchBox label="Search frames" said={said} />
        <Legend />
      </div>
      {answer.error && <Trouble failure={answer.error} />}
      {unfilled && <Trouble failure={unfilled} />}
      {tree && answer.data && answer.data.total > 0 && (
        <Graph
          label="Flame graph"
          tree={tree}
          zoomed={zoomed}
          found={found}
          brought={brought}
          paint={plainPaint}
          describe={(at) => describe(tree, at)}
          summary={(at) => summary(tree, at)}
          actions={(at) => actions(tree, at)}
          onZoom={(at) => (zoom.value = pathOf(tree, at).join(BETWEEN))}
        />
      )}
      {!answer.data && !answer.error && <Empty>Reading the samples…</Empty>}
      {answer.data?.total === 0 && (
        <Empty>No samples here. Select another time, or take away a filter.</Empty>
      )}
    </section>
  )
}

/** The frame that a piece of evidence is about, once its samples are there. */
function useSought(tree: Tree | null): Brought | null {
  const wanted = sought.value
  const brought = useRef<Brought | null>(null)
  if (!wanted) brought.current = null
  else if (tree && brought.current?.wanted !== wanted) {
    brought.current = { wanted, tree, at: widest(tree, wanted.name) }
  }
  return brought.current
}

function choose(value: string): void {
  merge.value = value
  zoom.value = ''
}

function turn(): void {
  direction.value = inverted.peek() ? 'callers' : 'callees'
  zoom.value = ''
}

/** `3 frames, 12.5 % of the samples`. */
export function sayFound(found: Found | null, total: number): string {
  if (!found) return ''
  if (found.matches === 0) return 'no match'
  const frames = found.matches === 1 ? '1 frame' : `${count(found.matches)} frames`
  return `${percent(found.samples / Math.max(total, 1))} in ${frames}`
}

function actions(tree: Tree, at: number) {
  const frame = tree.frame[at] as Frame
  const go = { title: 'Zoom here', run: () => (zoom.value = pathOf(tree, at).join(BETWEEN)) }
  if (at === 0) return [go]
  const group = tree.depth[at] === 1 ? groupFilter(merge.peek(), frame.name) : null
  return [go, ...frameActions(frame, group)]
}

const kindOf = (frame: Frame): string =>
  frame.kernel === undefined ? '' : frame.kernel ? 'kernel' : 'user'

/** One line about a frame, as the status line and a screen reader say it. */
function summary(tree: Tree, at: number): string {
  const frame = tree.frame[at] as Frame
  const share = percent(frame.value / Math.max(tree.value[0] ?? 0, 1))
  const parts = [visible(frame.name), kindOf(frame), `${count(frame.value)} samples, ${share}`]
  if (hidden(tree, at) > 0) parts.push('more below: zoom to fill in')
  return parts.filter(Boolean).join(' · ')
}

function describe(tree: Tree, at: number): Fact[] {
  const frame = tree.frame[at] as Frame
  const total = Math.max(tree.value[0] ?? 0, 1)
  const [low, high] = certainty(frame.value, total)
  const facts: Fact[] = [
    {
      name: 'Samples',
      text: `${count(frame.value)} · ${percent(frame.value / total)}`,
      note: `95 % sure: ${percent(low)} to ${percent(high)}`,
    },
  ]
  if (frame.self !== undefined) {
    facts.push({ name: 'Self', text: `${count(frame.self)} · ${percent(frame.self / total)}` })
  }
  const caller = tree.parent[at] ?? -1
  if (caller > 0) {
    const of = Math.max(tree.value[caller] ?? 0, 1)
    facts.push({
      name: inverted.value ? 'Of called' : 'Of caller',
      text: percent(frame.value / of),
    })
  }
  const alike = at > 0 ? same(tree, at) : null
  if (alike && alike.matches > 1) {
    facts.push({
      name: 'Everywhere',
      text: `${count(alike.samples)} · ${percent(alike.samples / total)}`,
      note: `in ${count(alike.matches)} places`,
    })
  }
  if (frame.module) facts.push({ name: 'Module', text: visible(frame.module), note: kindOf(frame) })
  const more = hidden(tree, at)
  if (more > 0) facts.push({ name: 'Not shown', text: percent(more), note: 'zoom to fill in' })
  return facts
}

function Legend() {
  return (
    <span class="legend" aria-hidden="true">
      <i class="kernel-box" /> kernel <i class="program-box" /> programs <i class="group-box" />{' '}
      groups
    </span>
  )
}
