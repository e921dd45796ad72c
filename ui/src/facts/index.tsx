/** The node at the end of the selection: network queues and their cores, zombies, units, containers. */
import { useEffect, useRef } from 'preact/hooks'
import { get, useQuery } from '../api'
import { Empty, Loading, Trouble } from '../flame/feedback'
import { isEmpty } from '../range'
import { selection } from '../state'
import { zone } from '../timeline/plot'
import { formatTime } from '../times'
import type { Facts as Known } from './document'
import { Card } from './card'
import './facts.css'
import { row } from './marked'
import { NetworkFacts } from './network'
import { Containers, Units } from './services'
import { ZombieFacts } from './zombies'

export function Facts() {
  const { data, error, loading } = useQuery<Known>((abort) => {
    const { from, to } = selection.value
    if (isEmpty({ from, to })) return null
    return get<Known>('/api/facts', { at_ms: to }, abort)
  })
  const place = useRef<HTMLElement>(null)
  const marked = row.value
  useEffect(() => {
    const found = place.current?.querySelector('[data-marked]')
    found?.scrollIntoView({ block: 'center' })
  }, [data, marked])
  return (
    <section ref={place} class="facts" aria-label="Node facts" aria-busy={loading}>
      <Loading on={loading} />
      {error && <Trouble failure={error} />}
      {data && (
        <>
          <p class="muted">As last seen before {formatTime(data.at_ms, zone.value, 3)}</p>
          <div class="cards">
            <NetworkFacts network={data.network} />
            {data.zombies ? (
              <ZombieFacts zombies={data.zombies} />
            ) : (
              <Card title="Memory cgroups">
                <Empty>Not recorded here.</Empty>
              </Card>
            )}
            <Units units={data.units} />
            <Containers containers={data.containers} />
          </div>
        </>
      )}
    </section>
  )
}
