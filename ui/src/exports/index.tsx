/** Downloads of the selection as it is filtered, for other tools, and the link to this view. */
import { useEffect, useRef } from 'preact/hooks'
import { link, query } from '../api'
import { copy } from '../copy'
import { filters, selection } from '../state'
import './exports.css'

type Format = { path: string; title: string; note: string; filtered: boolean }

const FORMATS: Format[] = [
  { path: 'export/speedscope', title: 'speedscope', note: 'speedscope.app', filtered: true },
  {
    path: 'export/firefox',
    title: 'Firefox Profiler',
    note: 'profiler.firefox.com',
    filtered: true,
  },
  { path: 'export/perfetto', title: 'Perfetto', note: 'ui.perfetto.dev', filtered: true },
  { path: 'export/pprof', title: 'pprof', note: 'go tool pprof', filtered: true },
  { path: 'export/folded', title: 'Folded stacks', note: 'flamegraph.pl', filtered: true },
  {
    path: 'report.html',
    title: 'Report',
    note: 'diagnosis of the selection, HTML',
    filtered: false,
  },
  { path: 'bundle', title: 'Bundle', note: 'the selection as one recording', filtered: false },
]

export function Exports() {
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => closing(menu.current), [])
  return (
    <details class="exports" ref={menu}>
      <summary>Export</summary>
      <ul>
        <li>
          <button onClick={() => void copy(location.href, 'the link to this view')}>
            Copy link <small>to this view</small>
          </button>
        </li>
        {FORMATS.map((format) => (
          <li key={format.path}>
            <a href={address(format)} download>
              {format.title} <small>{format.note}</small>
            </a>
          </li>
        ))}
      </ul>
    </details>
  )
}

function address(format: Format): string {
  return link(`/api/${format.path}`, query(selection.value, format.filtered ? filters.value : {}))
}

/** A menu closes when something else is clicked or focused, and by Escape. */
function closing(menu: HTMLDetailsElement | null): () => void {
  if (!menu) return () => {}
  const elsewhere = (event: Event) => {
    if (!menu.contains(event.target as Node)) menu.open = false
  }
  const escape = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !menu.open) return
    menu.open = false
    menu.querySelector('summary')?.focus()
    event.stopPropagation()
  }
  document.addEventListener('pointerdown', elsewhere)
  document.addEventListener('focusin', elsewhere)
  menu.addEventListener('keydown', escape)
  return () => {
    document.removeEventListener('pointerdown', elsewhere)
    document.removeEventListener('focusin', elsewhere)
  }
}
