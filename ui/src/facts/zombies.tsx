/** Memory cgroups: how many the kernel tracks, how many exist, and below what the rest died. */
import { count, visible } from '../flame/words'
import { zone } from '../timeline/plot'
import { formatMoment } from '../times'
import { Card } from './card'
import type { Zombies } from './document'
import { firstAndMarked, row, rowAttributes } from './marked'
import { byParent, formatBytes } from './order'

const SHOWN = 12

export function ZombieFacts({ zombies }: { zombies: Zombies }) {
  const parents = byParent(zombies.parents ?? [])
  const shown = firstAndMarked(parents, SHOWN, ({ parent }) => parent.path, row.value)
  const most = Math.max(1, ...parents.map(({ parent }) => parent.dying ?? 0))
  return (
    <Card title="Memory cgroups" note={readAt(zombies.read_ms)}>
      <dl class="figures">
        <Figure name="tracked" value={zombies.tracked} />
        <Figure name="exist" value={zombies.visible} />
        <Figure name="dying" value={zombies.dying} bad={(zombies.dying ?? 0) > 1000} />
      </dl>
      {parents.length > 0 && zombies.parents_read_ms !== zombies.read_ms && (
        <p class="muted">Parents {readAt(zombies.parents_read_ms)}</p>
      )}
      {parents.length > 0 && (
        <table>
          <caption class="unseen">Dying memory cgroups by parent</caption>
          <thead>
            <tr>
              <th scope="col">Parent</th>
              <th scope="col">Dying</th>
              <th scope="col">Pinned</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ parent: each, pins }) => (
              <tr key={each.path} {...rowAttributes(each.path)}>
                <th scope="row" class="mono">
                  {visible(each.path)}
                  <span class="share" style={{ width: `${(100 * (each.dying ?? 0)) / most}%` }} />
                </th>
                <td>
                  {each.exact === false && each.dying ? '≈' : ''}
                  {known(each.dying)}
                </td>
                <td>
                  {pins.length === 0 && '–'}
                  {pins.map((pin) => (
                    <div key={pin.kind}>
                      {formatBytes(pin.held_bytes ?? 0)}{' '}
                      <span class="muted">{pin.kind && visible(pin.kind)}</span>
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {parents.length > shown.length && (
        <p class="muted">and {parents.length - shown.length} parents more</p>
      )}
    </Card>
  )
}

const readAt = (time: number | null | undefined): string =>
  time === null || time === undefined ? '' : `read at ${formatMoment(time, zone.value)}`

const known = (value: number | null | undefined): string =>
  value === null || value === undefined ? '–' : count(value)

function Figure(shown: { name: string; value: number | null | undefined; bad?: boolean }) {
  return (
    <div class={shown.bad ? 'bad' : ''}>
      <dt>{shown.name}</dt>
      <dd>{known(shown.value)}</dd>
    </div>
  )
}
