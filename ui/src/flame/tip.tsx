/** What stands beside the pointer: a title and a few facts. */

import { useLayoutEffect, useRef } from 'preact/hooks'

export interface Fact {
  name: string
  text: string
  /** Said in passing. */
  note?: string
}

export function Tip(shown: { x: number; y: number; title: string; children: Fact[] }) {
  const element = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const tip = element.current
    if (!tip) return
    const { width, height } = tip.getBoundingClientRect()
    const right = shown.x + 14 + width > innerWidth - 8
    const below = shown.y + 16 + height > innerHeight - 8
    tip.style.left = `${Math.max(8, right ? shown.x - width - 10 : shown.x + 14)}px`
    tip.style.top = `${Math.max(8, below ? shown.y - height - 10 : shown.y + 16)}px`
  })
  return (
    <div class="tooltip tip" ref={element} aria-hidden="true">
      <strong class="mono">{shown.title}</strong>
      <dl>
        {shown.children.map((fact) => (
          <div key={fact.name}>
            <dt>{fact.name}</dt>
            <dd>
              {fact.text}
              {fact.note && <span class="muted"> {fact.note}</span>}
            </dd>
          </div>
        ))}
      </dl>
    </div>
  )
}
