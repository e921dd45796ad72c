/** What can be done with a frame: filters that hold for the whole page, and small things. */

import { filter, filters, notice, type Filters } from '../state'
import type { Action } from './menu'
import { search } from './settings'
import type { Frame } from './tree'
import { exactly, fit, visible } from './words'

/** The filter that keeps one group of the flame graph, by what it is merged by. */
export function groupFilter(merge: string, name: string): Filters | null {
  const number = /^(?:cpu|pid) (\d+)$/.exec(name)?.[1]
  if (merge === 'comm') return { comm: name }
  if (merge === 'cpu' && number) return { cpu: number }
  if (merge === 'cgroup' || merge === 'pod') return name.startsWith('[') ? null : { cgroup: name }
  return null
}

/** Another name to do without, beside those that are left out already. */
export function alsoWithout(before: string | undefined, name: string): string {
  return before ? `${before}|${exactly(name)}` : exactly(name)
}

/** Actions for a frame; `group` is the filter it stands for, if it is a group. */
export function frameActions(frame: Frame, group: Filters | null): Action[] {
  const set = (more: Filters) => filter({ ...filters.peek(), ...more })
  const short = fit(visible(frame.name), 40)
  const actions: Action[] = group
    ? [{ title: `Only ${short}`, run: () => set(group) }]
    : [
        { title: 'Only stacks with this function', run: () => set({ frame: exactly(frame.name) }) },
        {
          title: 'Without stacks of this function',
          run: () => set({ no_frame: alsoWithout(filters.peek().no_frame, frame.name) }),
        },
      ]
  actions.push(
    { title: 'Highlight everywhere', run: () => (search.value = frame.name) },
    { title: 'Copy the name', run: () => void copy(frame.name) },
  )
  return actions
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    notice('The name is in the clipboard.')
  } catch {
    notice('The browser does not let this page write to the clipboard.')
  }
}
