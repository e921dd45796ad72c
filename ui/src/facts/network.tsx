/** Each device's queues with the cores that serve them; a click looks at that core. */
import { Empty } from '../flame/feedback'
import { visible } from '../flame/words'
import { filter, filters } from '../state'
import { formatLength } from '../times'
import { Card } from './card'
import type { Network, Nic, Queue } from './document'
import { rowAttributes } from './marked'

export function NetworkFacts({ network }: { network: Network | null }) {
  const { nics, queues, over_ms: over } = network ?? { nics: [], queues: [], over_ms: 0 }
  const starved = queues.filter((each) => each.starved).length
  const note = `${queues.length} queues, ${starved || 'none'} starved in the last ${formatLength(over)}`
  return (
    <Card title="Network queues" note={queues.length ? note : ''}>
      {nics.length === 0 && <Empty>No device was recorded here.</Empty>}
      {nics.map((nic) => (
        <div key={nic.name} class="nic">
          <p>
            <b>{visible(nic.name)}</b> <span class="muted">{about(nic)}</span>
          </p>
          <ul class="queues" aria-label={`Queues of ${visible(nic.name)}`}>
            {queues
              .filter((queue) => queue.nic === nic.name)
              .map((queue) => (
                <QueueView key={`${queue.queue} ${queue.direction} ${queue.irq}`} queue={queue} />
              ))}
          </ul>
        </div>
      ))}
    </Card>
  )
}

function about(nic: Nic): string {
  const state = nic.up === false ? 'down' : nic.carrier === false ? 'no carrier' : ''
  return [nic.driver, nic.version, state]
    .filter(Boolean)
    .map((part) => visible(`${part}`))
    .join(' · ')
}

function QueueView({ queue }: { queue: Queue }) {
  const cores = queue.cpus.join(',')
  const chosen = cores !== '' && filters.value.cpu === cores
  return (
    <li
      data-queue={queue.queue}
      data-starved={Boolean(queue.starved)}
      {...rowAttributes(`${queue.nic} queue ${queue.queue}`)}
    >
      <button
        aria-pressed={chosen}
        disabled={cores === ''}
        title={queue.irq === null || queue.irq === undefined ? '' : `interrupt ${queue.irq}`}
        onClick={() => filter({ ...filters.peek(), cpu: chosen ? '' : cores })}
      >
        <span class="muted">queue {queue.queue}</span>{' '}
        {cores === '' ? 'core not known' : `core ${cores}`}
        {queue.starved ? <strong> starved {formatLength(queue.starved)}</strong> : ''}
      </button>
    </li>
  )
}
