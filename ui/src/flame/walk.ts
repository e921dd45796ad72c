/** Walking through a flame graph by keys. */

import { called, levelOf, type Tree } from './tree'

export type Step = 'in' | 'out' | 'left' | 'right' | 'first' | 'last'

/** Where a step leads from a frame, without leaving the subtree of `root`. */
export function walk(tree: Tree, at: number, step: Step, root = 0): number {
  switch (step) {
    case 'in':
      return widest(tree, called(tree, at)) ?? at
    case 'out':
      return at === 0 ? 0 : (tree.parent[at] as number)
    case 'left':
      return beside(tree, at, -1, root)
    case 'right':
      return beside(tree, at, 1, root)
    case 'first':
      return root
    case 'last':
      return hottest(tree, root)
  }
}

function widest(tree: Tree, frames: number[]): number | undefined {
  let best: number | undefined
  for (const at of frames) {
    if (best === undefined || (tree.value[at] as number) > (tree.value[best] as number)) best = at
  }
  return best
}

function beside(tree: Tree, at: number, by: number, root: number): number {
  const level = levelOf(tree, tree.depth[at] as number)
  let place = placeIn(level, at) + by
  while (place >= 0 && place < level.length) {
    const next = level[place] as number
    if (next < root || next >= (tree.end[root] as number)) return at
    if ((tree.value[next] as number) > 0) return next
    place += by
  }
  return at
}

function placeIn(level: Int32Array, at: number): number {
  let low = 0
  let high = level.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((level[middle] as number) < at) low = middle + 1
    else high = middle
  }
  return low
}

/** The end of the widest path. */
function hottest(tree: Tree, root: number): number {
  let at = root
  for (;;) {
    const next = widest(tree, called(tree, at))
    if (next === undefined) return at
    at = next
  }
}

/**
 * The frames that stand in the text equivalent: the widest ones below `root`, and around
 * the current one its callers, those beside it and those it called. In the order of the walk.
 */
export function outline(tree: Tree, root: number, current: number, most: number): number[] {
  const kept = new Set<number>([root])
  const order: number[] = []
  for (let at = root; at < (tree.end[root] as number); at += 1) order.push(at)
  if (order.length > most) {
    order.sort((a, b) => (tree.value[b] as number) - (tree.value[a] as number) || a - b)
  }
  for (const at of order.slice(0, most)) kept.add(at)
  for (let at = current; at >= 0; at = tree.parent[at] as number) kept.add(at)
  const caller = tree.parent[current] as number
  for (const at of caller >= 0 ? called(tree, caller).slice(0, most) : []) kept.add(at)
  for (const at of called(tree, current).slice(0, most)) kept.add(at)
  return [...kept].sort((a, b) => a - b)
}
