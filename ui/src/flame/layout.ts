/** Which boxes of a flame graph are to be drawn: those in sight, and no two on one pixel. */

import { levelOf, type Tree } from './tree'

/** A stretch of the graph, in samples from its left edge. */
export interface Stretch {
  from: number
  to: number
}

export interface Box {
  at: number
  level: number
  /** Pixels. */
  left: number
  width: number
  /** Further frames stand on the same pixel. */
  crumbs: boolean
}

/** The stretch that a frame and what it called fill. */
export function stretchOf(tree: Tree, at: number): Stretch {
  const from = tree.start[at] as number
  return { from, to: from + Math.max(tree.value[at] as number, Number.MIN_VALUE) }
}

/** The first place in a level at which a frame ends beyond `where`. */
export function seek(tree: Tree, level: Int32Array, where: number, first = 0): number {
  let low = first
  let high = level.length
  while (low < high) {
    const middle = (low + high) >> 1
    const at = level[middle] as number
    if ((tree.start[at] as number) + (tree.value[at] as number) > where) high = middle
    else low = middle + 1
  }
  return low
}

/**
 * The boxes of one level within a stretch that is `width` pixels wide. Frames narrower
 * than a pixel become one box of a pixel, so a level never has more boxes than pixels.
 */
export function placeLevel(tree: Tree, number: number, seen: Stretch, width: number): Box[] {
  const level = levelOf(tree, number)
  const length = seen.to - seen.from
  if (length <= 0 || width <= 0) return []
  const scale = width / length
  const boxes: Box[] = []
  let place = seek(tree, level, seen.from)
  while (place < level.length) {
    const at = level[place] as number
    const start = tree.start[at] as number
    const left = (start - seen.from) * scale
    if (left >= width) break
    const right = left + (tree.value[at] as number) * scale
    if (right - left >= 1) {
      const from = Math.max(left, 0)
      boxes.push({
        at,
        level: number,
        left: from,
        width: Math.min(right, width) - from,
        crumbs: false,
      })
      place += 1
      continue
    }
    const pixel = Math.max(0, Math.floor(left))
    const next = skip(tree, level, place, seen.from + (pixel + 1) / scale, 1 / scale)
    boxes.push({ at, level: number, left: pixel, width: 1, crumbs: next > place + 1 })
    place = next
  }
  return boxes
}

/** The first frame after `place` that starts beyond a pixel's edge, or is wider than one. */
function skip(
  tree: Tree,
  level: Int32Array,
  place: number,
  edge: number,
  narrowest: number,
): number {
  const next = Math.max(seek(tree, level, edge, place), place + 1)
  const at = level[next]
  if (at === undefined) return next
  const narrow = (tree.value[at] as number) < narrowest
  return narrow && (tree.start[at] as number) < edge ? next + 1 : next
}

/** The frame at a place of the picture, or -1. */
export function frameAt(
  tree: Tree,
  number: number,
  seen: Stretch,
  width: number,
  pixel: number,
): number {
  if (width <= 0) return -1
  const level = levelOf(tree, number)
  const where = seen.from + (pixel / width) * (seen.to - seen.from)
  const at = level[seek(tree, level, where)]
  if (at === undefined) return -1
  const reach = (seen.to - seen.from) / width // a box is at least a pixel wide
  return (tree.start[at] as number) <= where + reach / 2 ? at : -1
}

/** Levels in sight of a window that is `height` high and scrolled by `top`. */
export function levelsInSight(
  levels: number,
  line: number,
  top: number,
  height: number,
): { first: number; last: number } {
  const first = Math.max(0, Math.floor(top / line))
  return { first, last: Math.min(levels - 1, Math.ceil((top + height) / line)) }
}

/** How deep the called functions of a frame go, in levels from the root. */
export function deepest(tree: Tree, at: number): number {
  let deep = tree.depth[at] as number
  for (let here = at; here < (tree.end[at] as number); here += 1) {
    deep = Math.max(deep, tree.depth[here] as number)
  }
  return deep
}
