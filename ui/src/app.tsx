/** The layout: top bar, timeline, then the selection's views beside the diagnosis. */
import type { ComponentType } from 'preact'
import { Banner } from './banner'
import { Compare } from './compare'
import { Diagnosis } from './diagnosis'
import { Facts } from './facts'
import { Flame } from './flame'
import { Heatmap } from './heatmap'
import { Help } from './help'
import { mode, panel, recording, show, type Mode } from './state'
import { Table } from './table'
import { Timeline } from './timeline'
import { TopBar } from './topbar'

const VIEWS: { mode: Mode; title: string; view: ComponentType }[] = [
  { mode: 'flame', title: 'Flame graph', view: Flame },
  { mode: 'table', title: 'Table', view: Table },
  { mode: 'compare', title: 'Compare', view: Compare },
  { mode: 'facts', title: 'Node facts', view: Facts },
  { mode: 'diagnosis', title: 'Diagnosis', view: Diagnosis },
]

export function App() {
  return (
    <>
      <TopBar />
      <Banner />
      {recording.value ? <Views /> : <main class="opening">Opening the recording…</main>}
      <Help />
    </>
  )
}

function Views() {
  return (
    <main class={panel.value ? 'views with-panel' : 'views'}>
      <div class="looked">
        <Timeline />
        <Heatmap />
        <Tabs />
      </div>
      {panel.value && (
        <aside class="panel" aria-label="Diagnosis panel">
          <button class="quiet close" onClick={() => (panel.value = false)} title="Close the panel">
            <span aria-hidden="true">×</span>
            <span class="unseen">Close the diagnosis panel</span>
          </button>
          <Diagnosis />
        </aside>
      )}
    </main>
  )
}

/** The diagnosis is a tab while its panel is closed. */
function Tabs() {
  const offered = VIEWS.filter((each) => each.mode !== 'diagnosis' || !panel.value)
  const chosen = offered.find((each) => each.mode === mode.value) ?? offered[0]
  const View = chosen?.view ?? Flame
  return (
    <div class="tabs">
      <div role="tablist" aria-label="Views of the selection" onKeyDown={walkTabs}>
        {offered.map((each) => (
          <button
            key={each.mode}
            id={`tab-${each.mode}`}
            role="tab"
            aria-selected={each === chosen}
            aria-controls="tab-panel"
            tabIndex={each === chosen ? 0 : -1}
            onClick={() => show(each.mode)}
          >
            {each.title}
          </button>
        ))}
        {!panel.value && (
          <button class="quiet open-panel" onClick={() => (panel.value = true)}>
            Open diagnosis beside
          </button>
        )}
      </div>
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${chosen?.mode}`}>
        <View />
      </div>
    </div>
  )
}

function walkTabs(event: KeyboardEvent): void {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
  if (!by) return
  const list = event.currentTarget as HTMLElement
  const tabs = [...list.querySelectorAll<HTMLButtonElement>('[role=tab]')]
  const at = tabs.indexOf(document.activeElement as HTMLButtonElement)
  if (at < 0) return
  const next = tabs[(at + by + tabs.length) % tabs.length]
  next?.click()
  next?.focus()
  event.preventDefault()
}
