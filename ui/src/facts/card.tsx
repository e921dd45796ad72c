/** A group of facts under its title. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

export function Card(shown: { title: string; note?: string; children: ComponentChildren }) {
  const id = useId()
  return (
    <section class="card" aria-labelledby={id}>
      <h3 id={id}>
        {shown.title} {shown.note && <small class="muted">{shown.note}</small>}
      </h3>
      {shown.children}
    </section>
  )
}
