/** The flame graph as a tree of text: what the keys walk through and a screen reader says. */

import { useMemo } from 'preact/hooks'
import type { Tree } from './tree'
import { outline } from './walk'

const MOST = 150

interface Outlined {
  label: string
  tree: Tree
  zoomed: number
  current: number
  summary: (at: number) => string
  onKeyDown: (event: KeyboardEvent) => void
  onFocus: (focused: boolean) => void
  onChoose: (at: number) => void
}

export function Outline(shown: Outlined) {
  const { tree, zoomed, current } = shown
  const frames = useMemo(() => outline(tree, zoomed, current, MOST), [tree, zoomed, current])
  // A pointer that moves draws the graph anew many times a second, but changes nothing here.
  const items = useMemo(() => frames.map((at) => itemOf(shown, at)), [frames, current])
  return (
    <ul
      class="flame-outline"
      role="tree"
      aria-label={`${shown.label}. Arrow keys walk through the frames, Enter zooms, Escape resets.`}
      aria-activedescendant={`flame-frame-${current}`}
      tabIndex={0}
      onKeyDown={shown.onKeyDown}
      onFocus={(event) => shown.onFocus(event.currentTarget.matches(':focus-visible'))}
      onBlur={() => shown.onFocus(false)}
    >
      {items}
    </ul>
  )
}

function itemOf({ tree, current, summary, onChoose }: Outlined, at: number) {
  return (
    <li
      key={at}
      id={`flame-frame-${at}`}
      role="treeitem"
      aria-level={(tree.depth[at] ?? 0) + 1}
      aria-selected={at === current}
      aria-expanded={(tree.end[at] ?? 0) > at + 1 ? true : undefined}
      data-frame={tree.frame[at]?.name}
      data-value={tree.value[at]}
      onClick={() => onChoose(at)}
    >
      {summary(at)}
    </li>
  )
}
