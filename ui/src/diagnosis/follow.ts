/** Go to a piece of evidence, and mark what it is about there. */
import { row } from '../facts/marked'
import { search, sought, zoom } from '../flame/settings'
import { jump } from '../state'
import { target, type Look } from './document'

/** Select its time, filter to it, open its tab, mark its frame or row: one step of history. */
export function goTo(look: Look): void {
  const frame = look.marked_frame ?? ''
  jump({
    ...target(look),
    also: () => {
      search.value = frame
      zoom.value = ''
      row.value = look.row ?? ''
    },
  })
  sought.value = frame ? { name: frame } : null
}
