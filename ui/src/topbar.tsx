/** Node, selected time as text, filters, downloads, theme. */
import { Exports } from './exports'
import { FilterBar } from './filters'
import { recording } from './state'
import { ThemeSwitch } from './themeswitch'
import { SelectedTime } from './timeline/selected'

export function TopBar() {
  const known = recording.value
  return (
    <header class="topbar">
      <h1>
        <span class="mark" aria-hidden="true" />
        Nodescope
      </h1>
      {known && (
        <>
          <span class="node" title={known.node.kernel}>
            {known.node.hostname ?? 'unnamed node'}
            <small>{known.cpus.length} cores</small>
          </span>
          <SelectedTime />
          <FilterBar />
          <Exports />
        </>
      )}
      <ThemeSwitch />
    </header>
  )
}
