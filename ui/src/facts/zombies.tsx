/** Memory cgroups: how many the kernel tracks, how many exist, and below what the rest died. */
import { count, visible } from '../flame/words'
import { zone } from '../timeline/plot'
import { formatMoment } from '../times'
import { Card } from './card'
import type { Zombies } from './document'
import { firstAndMarked, row, rowAttributes } from './marked'
import { formatBytes } from './order'

const SHOWN = 12

export function ZombieFacts({ zombies }: { zombies: Zombies }) {
  const parents = [...(zombies.parents ?? [])].sort((a, b) => (b.dying ?? 0) - (a.dying ?? 0))
  const shown = firstAndMarked(parents, SHOWN, (each) => each.path, row.value)
  const most = Math.max(1, ...parents.map((each) => each.dying ?? 0))
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
            {shown.map((each) => (
              <tr key={`${each.path} ${each.kind}`} {...rowAttributes(each.path)}>
                <th scope="row" class="mono">
                  {visible(each.path)}
                  <span class="share" style={{ width: `${(100 * (each.dying ?? 0)) / most}%` }} />
                </th>
                <td>
                  {each.exact === false && each.dying ? '≈' : ''}
                  {known(each.dying)}
                </td>
                <td>
                  {each.held_bytes ? formatBytes(each.held_bytes) : '–'}{' '}
                  <span class="muted">{each.kind && visible(each.kind)}</span>
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
