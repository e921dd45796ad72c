/** The keys of the page, shown by `?`. */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

export const helpOpen = signal(false)

const KEYS: [string, string][] = [
  ['?', 'this list'],
  ['/', 'to the filters'],
  ['wheel', 'zoom the timeline at the pointer; sideways or with Shift, pan'],
  ['drag', 'select a span; with Shift or on the ruler, pan; an edge moves by itself'],
  ['click', 'select around an event, or a core’s pegged time'],
  ['double click', 'zoom to the selection'],
  ['← →', 'pan (these and the following while the timeline has the focus)'],
  ['+ −', 'zoom in and out'],
  ['Home End', 'to the start or the end of the recording'],
  ['a', 'the whole recording'],
  ['z', 'zoom to the selection'],
  ['s', 'select what is seen'],
  ['n p', 'select around the next or previous event that matters'],
  ['Shift ← →', 'move the selection; with Alt, its end'],
  ['↑ ↓', 'walk through the cores; Enter filters everything to that core'],
  ['arrows, Space', 'in the heatmap: move; set one end of a range, then the other'],
  ['arrows, Enter', 'in a flame graph: walk; zoom. Backspace goes out, Escape to the root'],
  ['Shift F10', 'in a flame graph: what can be done with this frame'],
]

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const opened = (event: KeyboardEvent) => {
      if (event.key !== '?' || typing(event.target)) return
      helpOpen.value = true
      event.preventDefault()
    }
    addEventListener('keydown', opened)
    return () => removeEventListener('keydown', opened)
  }, [])
  const open = helpOpen.value
  useEffect(() => {
    if (open) dialog.current?.showModal()
    else dialog.current?.close()
  }, [open])
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={() => (helpOpen.value = false)}>
      <h2>Keys</h2>
      <dl class="keys">
        {KEYS.map(([key, meaning]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <button onClick={() => (helpOpen.value = false)}>Close</button>
    </dialog>
  )
}

/** Whether a key press is text for somebody. */
export function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select') !== null
}
