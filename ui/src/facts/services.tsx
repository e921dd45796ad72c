/** Units and containers, those that are not well first. */
import { useState } from 'preact/hooks'
import { Empty } from '../flame/feedback'
import { count, visible } from '../flame/words'
import { Card } from './card'
import type { Container, Unit } from './document'
import { firstAndMarked, row, rowAttributes } from './marked'
import { byName, byTrouble, healthOf, troubleOf } from './order'

const SHOWN = 8

export function Units({ units }: { units: Unit[] }) {
  const [all, setAll] = useState(false)
  const ordered = byTrouble(units)
  const bad = ordered.filter((unit) => troubleOf(unit)).length
  const most = all ? Infinity : Math.max(SHOWN, Math.min(bad, 3 * SHOWN))
  const shown = firstAndMarked(ordered, most, (unit) => unit.unit, row.value)
  return (
    <Card title="Units" note={healthOf(units)}>
      {units.length === 0 && <Empty>No unit was recorded here.</Empty>}
      {units.length > 0 && (
        <table>
          <caption class="unseen">Units of systemd</caption>
          <thead>
            <tr>
              <th scope="col">Unit</th>
              <th scope="col">State</th>
              <th scope="col">Failed</th>
              <th scope="col">Preset</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((unit) => (
              <tr
                key={unit.unit}
                data-trouble={troubleOf(unit) !== ''}
                {...rowAttributes(unit.unit)}
              >
                <th scope="row" class="mono">
                  {visible(unit.unit)}
                </th>
                <td>
                  {[unit.active, unit.sub].map((part) => visible(part ?? '')).join(' ')}
                  {troubleOf(unit) && <strong> {visible(troubleOf(unit))}</strong>}
                </td>
                <td>{unit.failures ? count(unit.failures) : '–'}</td>
                <td>{visible(unit.preset ?? '–')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {units.length > shown.length && (
        <button class="quiet" onClick={() => setAll(true)}>
          Show all {units.length}
        </button>
      )}
    </Card>
  )
}

export function Containers({ containers }: { containers: Container[] }) {
  const groups = byName(containers)
  return (
    <Card title="Containers" note={containers.length ? `${containers.length}` : ''}>
      {containers.length === 0 && (
        <Empty>No container was recorded here: there was none, or no runtime could be asked.</Empty>
      )}
      {containers.length > 0 && (
        <table>
          <caption class="unseen">Containers by name</caption>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Seen</th>
              <th scope="col">Last</th>
              <th scope="col">Image</th>
            </tr>
          </thead>
          <tbody>
            {firstAndMarked(groups, 4 * SHOWN, (group) => group.name, row.value).map((group) => (
              <tr
                key={`${group.name} ${group.image}`}
                data-trouble={group.failed > 0}
                {...rowAttributes(group.name)}
              >
                <th scope="row" class="mono">
                  {visible(group.name)}
                </th>
                <td>{count(group.containers.length)}</td>
                <td>{last(group.containers)}</td>
                <td class="mono">{visible(group.image)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  )
}

function last(containers: Container[]): string {
  const each = containers[containers.length - 1]
  const code = each?.exit_status
  return visible(each?.state ?? '–') + (code === null || code === undefined ? '' : ` (${code})`)
}
