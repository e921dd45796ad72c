/** What ran most in the selection, as a table: functions, processes, cores, cgroups. */

import { useMemo, useState } from 'preact/hooks'
import './table.css'
import { get, query, useQuery } from '../api'
import { frameActions, groupFilter } from '../flame/actions'
import { Empty, Loading, Trouble } from '../flame/feedback'
import { Menu, type Action } from '../flame/menu'
import { compile } from '../flame/search'
import { SearchBox } from '../flame/searchbox'
import { search } from '../flame/settings'
import { count, percent, visible } from '../flame/words'
import { filter, filters, param, selection, show } from '../state'
import { readOrder, sorted, turned, wholeOf, writeOrder, type Column, type Entry } from './rows'

const KEYS = [
  { value: 'function', title: 'Functions' },
  { value: 'comm', title: 'Processes' },
  { value: 'cpu', title: 'Cores' },
  { value: 'cgroup', title: 'Cgroups' },
  { value: 'pid', title: 'Process ids' },
] as const

const HEADS: { column: Column; title: string; number: boolean; functions: boolean }[] = [
  { column: 'name', title: 'Name', number: false, functions: false },
  { column: 'self', title: 'Self', number: true, functions: true },
  { column: 'total', title: 'Total', number: true, functions: false },
  { column: 'module', title: 'Module', number: false, functions: true },
]

const ASKED = 2000
const LISTED = 300

const by = param('by', 'function')
const order = param('sort', 'total-')

interface Opened {
  entry: Entry
  x: number
  y: number
}

export function Table() {
  const answer = useQuery<{ by: string; entries: Entry[] }>((signal) => {
    const key = by.value
    const params = { ...query(selection.value, filters.value), by: key, limit: ASKED }
    return get<Entry[]>('/api/top', params, signal).then((entries) => ({ by: key, entries }))
  })
  const { data } = answer
  const test = useMemo(() => compile(search.value), [search.value])
  const rows = useMemo(() => {
    const found = (data?.entries ?? []).filter(
      ({ name, module }) =>
        typeof test === 'string' || !search.value.trim() || test(name) || test(module ?? ''),
    )
    return sorted(found, readOrder(order.value))
  }, [data, test, order.value])
  const [menu, setMenu] = useState<Opened | null>(null)
  const functions = data?.by === 'function'
  const whole = useMemo(() => wholeOf(data?.entries ?? []), [data])
  const left = rows.length - Math.min(rows.length, LISTED)
  return (
    <section class="table" aria-label="Table">
      <Loading on={answer.loading} />
      <div class="tools">
        <div role="group" aria-label="Rank" class="joined">
          {KEYS.map(({ value, title }) => (
            <button
              key={value}
              aria-pressed={by.value === value}
              onClick={() => (by.value = value)}
            >
              {title}
            </button>
          ))}
        </div>
        <SearchBox label="Search rows" said={typeof test === 'string' ? test : ''} />
        <span class="table-count">
          {data && `${count(rows.length)} rows${left ? `, ${count(LISTED)} shown` : ''}`}
        </span>
      </div>
      {answer.error && <Trouble failure={answer.error} />}
      {rows.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Rows">
          <table>
            <thead>
              <tr>
                {HEADS.filter((head) => functions || !head.functions).map((head) => (
                  <Head key={head.column} {...head} />
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, LISTED).map((entry) => (
                <Row
                  key={`${entry.module ?? ''}\u0000${entry.name}`}
                  entry={entry}
                  functions={functions}
                  whole={whole}
                  onOpen={(x, y) => setMenu({ entry, x, y })}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {!data && !answer.error && <Empty>Reading the samples…</Empty>}
      {data && rows.length === 0 && (
        <Empty>
          {data.entries.length > 0
            ? 'No row matches the search.'
            : 'No samples here. Select another time, or take away a filter.'}
        </Empty>
      )}
      {menu && data && (
        <Menu
          x={menu.x}
          y={menu.y}
          label={visible(menu.entry.name)}
          actions={actions(data.by, menu.entry)}
          onClose={() => setMenu(null)}
        />
      )}
    </section>
  )
}

function Head({ column, title, number }: { column: Column; title: string; number: boolean }) {
  const now = readOrder(order.value)
  const mine = now.column === column
  const sort = mine ? (now.falling ? 'descending' : 'ascending') : 'none'
  return (
    <th scope="col" aria-sort={sort} class={number ? 'number' : ''}>
      <button onClick={() => (order.value = writeOrder(turned(now, column)))}>
        {title}
        <span aria-hidden="true" class="arrow">
          {mine ? (now.falling ? '▾' : '▴') : ''}
        </span>
      </button>
    </th>
  )
}

interface Listed {
  entry: Entry
  functions: boolean
  whole: number
  onOpen: (x: number, y: number) => void
}

function Row({ entry, functions, whole, onOpen }: Listed) {
  const name = visible(entry.name)
  return (
    <tr>
      <th scope="row">
        <button
          class="quiet row-name mono"
          title={name}
          aria-haspopup="menu"
          onClick={(event) => {
            const { left, bottom } = event.currentTarget.getBoundingClientRect()
            onOpen(left, bottom + 2)
          }}
        >
          {name}
        </button>
      </th>
      {functions && <Amount value={entry.self ?? 0} whole={whole} />}
      <Amount value={entry.samples} whole={whole} />
      {functions && (
        <td class="module mono" title={visible(entry.module ?? '')}>
          {visible(entry.module ?? '')}
        </td>
      )}
    </tr>
  )
}

/** Samples, their share, and the share as a bar. */
function Amount({ value, whole }: { value: number; whole: number }) {
  const share = whole > 0 ? value / whole : 0
  return (
    <td class="number">
      <span class="amount">
        <span class="bar" style={{ width: `${Math.min(100, share * 100)}%` }} aria-hidden="true" />
        <span class="share">{percent(share)}</span>
        <span class="muted">{count(value)}</span>
      </span>
    </td>
  )
}

function actions(key: string, entry: Entry): Action[] {
  if (key === 'function') {
    const frame = { name: entry.name, value: entry.samples }
    const seen = {
      title: 'Show in the flame graph',
      run: () => {
        search.value = entry.name
        show('flame')
      },
    }
    return [
      seen,
      ...frameActions(frame, null).filter(({ title }) => !title.startsWith('Highlight')),
    ]
  }
  const number = entry.name.replace(/^(?:cpu|pid) /, '')
  const wanted =
    key === 'pid' ? { pid: number } : groupFilter(key, key === 'cpu' ? `cpu ${number}` : entry.name)
  return wanted
    ? [{ title: 'Only this', run: () => filter({ ...filters.peek(), ...wanted }) }]
    : [{ title: 'Show the flame graph', run: () => show('flame') }]
}
