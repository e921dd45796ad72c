/** The table of what changed, flagged ones first. */

import { Empty } from '../flame/feedback'
import { search } from '../flame/settings'
import { compile } from '../flame/search'
import { factor, percent, visible } from '../flame/words'
import { filter, filters, show, type Filters } from '../state'
import { headline, odds, SIGNS, statusOf, type Change } from './changes'
import { listed } from './settings'

const MOST = 200
const KINDS: Record<string, string> = {
  comm: 'process',
  function: 'function',
  kernel: 'kernel',
  core: 'process on a core',
}

export function Changes({ rows }: { rows: Change[] }) {
  const flagged = rows.filter((row) => row.flagged)
  const all = listed.value === 'all' || flagged.length === 0
  const test = compile(search.value)
  const wanted = (all ? rows : flagged).filter(
    ({ name }) => typeof test === 'string' || !search.value.trim() || test(name),
  )
  return (
    <>
      <div class="tools">
        <h3>{headline(rows)}</h3>
        <button
          aria-pressed={all}
          disabled={flagged.length === 0}
          onClick={() => (listed.value = all ? 'flagged' : 'all')}
        >
          Show all that was tested
        </button>
      </div>
      {wanted.length === 0 ? (
        <Empty>Nothing to list.</Empty>
      ) : (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Changes">
          <table class="changes">
            <thead>
              <tr>
                <th scope="col">Change</th>
                <th scope="col">Name</th>
                <th scope="col">Kind</th>
                <th scope="col" class="amount-column">
                  Selection
                </th>
                <th scope="col" class="amount-column">
                  Baseline
                </th>
                <th scope="col" class="amount-column">
                  Factor
                </th>
                <th scope="col" class="amount-column" title="chance of a false flag">
                  q
                </th>
                <th
                  scope="col"
                  title="windows of the baseline that had as much (shrunk: as little)"
                >
                  As extreme
                </th>
              </tr>
            </thead>
            <tbody>
              {wanted.slice(0, MOST).map((row) => (
                <Row key={`${row.kind} ${row.name}`} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function Row({ row }: { row: Change }) {
  const [group, inner] = split(row)
  const known = row.status !== 'unknown'
  const status =
    row.flagged && row.status !== 'unknown'
      ? row.status
      : statusOf(row.window_share, row.baseline_share)
  return (
    <tr class={row.flagged ? 'flagged' : ''} data-status={row.status}>
      <td>
        <span class={row.flagged ? `change ${status}` : 'muted'}>
          {known ? (
            <>
              <span aria-hidden="true">{SIGNS[status]}</span> {status}
            </>
          ) : (
            '–'
          )}
        </span>
      </td>
      <th scope="row">
        <button class="quiet row-name mono" title={visible(row.name)} onClick={() => go(row)}>
          {inner && <span class="muted">{visible(group)} › </span>}
          {visible(inner || group)}
        </button>
      </th>
      <td class="muted">{KINDS[row.kind] ?? visible(row.kind)}</td>
      <td class="amount-column">{percent(row.window_share)}</td>
      <td class="amount-column">{percent(row.baseline_share)}</td>
      <td class="amount-column">{factor(row.window_share, row.baseline_share)}</td>
      <td class="amount-column">{odds(row.q)}</td>
      <td class="muted">{row.extreme}</td>
    </tr>
  )
}

/** `kubelet;read` is a function in a process; a process's own name may have any sign but that. */
function split({ kind, name }: Change): [string, string] {
  const at = kind === 'function' || kind === 'core' ? name.indexOf(';') : -1
  return at < 0 ? [name, ''] : [name.slice(0, at), name.slice(at + 1)]
}

/** To the flame graph of what a row is about. */
function go(row: Change): void {
  const [group, inner] = split(row)
  const more: Filters = {}
  if (row.kind === 'comm' || row.kind === 'function') more.comm = group
  if (row.kind === 'core') {
    more.cpu = group.replace(/^cpu /, '')
    more.comm = inner
  }
  search.value = row.kind === 'function' ? inner : row.kind === 'kernel' ? row.name : ''
  if (Object.keys(more).length > 0) filter({ ...filters.peek(), ...more })
  show('flame')
}
