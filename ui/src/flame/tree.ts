/**
 * A flame graph's tree as columns.
 *
 * Frames are numbered in the order of a walk from the left, callers before the called, so
 * that a subtree is a range of numbers and each level of the tree is sorted by place.
 * Nothing here recurses: stacks may be a million functions deep.
 */

/**
 * A frame as the server sends it. In comparisons `base` is what the baseline has in as long a
 * time, and `p` how likely chance alone makes such a difference.
 */
export interface Frame {
  name: string
  value: number
  self?: number
  module?: string
  kernel?: boolean
  /** There is more below than was sent: ask again with its path, or shorter with its id. */
  more?: boolean
  id?: string
  base?: number
  p?: number
  status?: 'new' | 'grown' | 'shrunk' | 'gone' | 'same'
  children?: Frame[]
}

export interface Tree {
  size: number
  frame: Frame[]
  /** Width of each, in samples. */
  value: Float64Array
  /** Place of its left edge, in samples. */
  start: Float64Array
  /** -1 at the root. */
  parent: Int32Array
  depth: Int32Array
  /** How far the frames it called reach, in samples. */
  reach: Float64Array
  /** One past the last frame of its subtree. */
  end: Int32Array
  /** How many levels there are. */
  levels: number
  /** The frames of all levels, one level after the other, each from the left. */
  order: Int32Array
  /** Where each level starts in `order`, and where the last one ends. */
  bounds: Int32Array
}

export type Weigh = (frame: Frame) => number

const byName = (one: Frame, other: Frame): number =>
  one.name < other.name ? -1 : one.name > other.name ? 1 : 0

function named(children: Frame[]): Frame[] {
  for (let at = 1; at < children.length; at += 1) {
    const before = children[at - 1]
    const here = children[at]
    if (before && here && byName(before, here) > 0) return [...children].sort(byName)
  }
  return children
}

/** Columns of a tree; called functions stand by name, so that two graphs look alike. */
export function flatten(root: Frame, weigh: Weigh = (frame) => frame.value): Tree {
  const frame: Frame[] = []
  const parents: number[] = []
  const waiting: Frame[] = [root]
  const callers: number[] = [-1]
  while (waiting.length > 0) {
    const here = waiting.pop() as Frame
    const caller = callers.pop() as number
    const number = frame.push(here) - 1
    parents.push(caller)
    const children = named(here.children ?? [])
    for (let at = children.length - 1; at >= 0; at -= 1) {
      waiting.push(children[at] as Frame)
      callers.push(number)
    }
  }
  return columns(frame, Int32Array.from(parents), weigh)
}

function columns(frame: Frame[], parent: Int32Array, weigh: Weigh): Tree {
  const size = frame.length
  const value = new Float64Array(size)
  const start = new Float64Array(size)
  const reach = new Float64Array(size)
  const depth = new Int32Array(size)
  const below = new Int32Array(size).fill(1)
  const heights: number[] = []
  for (let at = 0; at < size; at += 1) {
    const caller = parent[at] as number
    value[at] = Math.max(0, weigh(frame[at] as Frame))
    if (caller >= 0) {
      depth[at] = (depth[caller] as number) + 1
      start[at] = reach[caller] as number
      reach[caller] = (reach[caller] as number) + (value[at] as number)
    }
    reach[at] = start[at] as number
    const level = depth[at] as number
    heights[level] = (heights[level] ?? 0) + 1
  }
  for (let at = size - 1; at > 0; at -= 1) {
    const caller = parent[at] as number
    below[caller] = (below[caller] as number) + (below[at] as number)
  }
  const end = below.map((count, at) => at + count)
  const bounds = new Int32Array(heights.length + 1)
  for (let level = 0; level < heights.length; level += 1) {
    bounds[level + 1] = (bounds[level] as number) + (heights[level] as number)
  }
  const order = levelled(depth, bounds)
  const levels = heights.length
  return { size, frame, value, start, reach, parent, depth, end, levels, order, bounds }
}

function levelled(depth: Int32Array, bounds: Int32Array): Int32Array {
  const order = new Int32Array(depth.length)
  const next = bounds.slice()
  for (let at = 0; at < depth.length; at += 1) {
    const level = depth[at] as number
    const place = next[level] as number
    order[place] = at
    next[level] = place + 1
  }
  return order
}

/** The frames of one level, from the left. */
export function levelOf(tree: Tree, level: number): Int32Array {
  if (level < 0 || level >= tree.levels) return new Int32Array(0)
  return tree.order.subarray(tree.bounds[level], tree.bounds[level + 1])
}

/** The frames from the root to this one, itself included. */
export function callers(tree: Tree, at: number): number[] {
  const found: number[] = []
  for (let here = at; here >= 0; here = tree.parent[here] as number) found.push(here)
  return found.reverse()
}

/** The names from below the root to this frame: how the server and the URL call it. */
export function pathOf(tree: Tree, at: number): string[] {
  return callers(tree, at)
    .slice(1)
    .map((here) => (tree.frame[here] as Frame).name)
}

/** The frames called directly, from the left. */
export function called(tree: Tree, at: number): number[] {
  const found: number[] = []
  const end = tree.end[at] as number
  for (let here = at + 1; here < end; here = tree.end[here] as number) found.push(here)
  return found
}

/** The frame at a path, or the last one on the way that there is. */
export function findPath(tree: Tree, path: string[]): { at: number; whole: boolean } {
  let at = 0
  for (const name of path) {
    const next = called(tree, at).find((here) => (tree.frame[here] as Frame).name === name)
    if (next === undefined) return { at, whole: false }
    at = next
  }
  return { at, whole: true }
}

/**
 * The tree with the frame at `path` replaced by one that was filled in. Callers that the
 * tree lacks (pruned: the path came from a link) are made up, as wide as the frame.
 */
export function splice(root: Frame, path: string[], filled: Frame): Frame {
  const top: Frame = { ...root }
  let here = top
  path.forEach((name, level) => {
    const children = [...(here.children ?? [])]
    const place = children.findIndex((child) => child.name === name)
    const known = place >= 0 ? (children[place] as Frame) : { ...filled, name, children: [] }
    const next = level === path.length - 1 ? { ...filled, name } : { ...known }
    if (place >= 0) children[place] = next
    else children.push(next)
    here.children = children
    here = next
  })
  return path.length === 0 ? filled : top
}

/** Whether anything of a subtree was left out by the server. */
export function lacks(tree: Tree, at: number): boolean {
  const end = tree.end[at] as number
  for (let here = at; here < end; here += 1) if ((tree.frame[here] as Frame).more) return true
  return false
}

/** The share of a frame that was called from it and is not shown, because it was pruned. */
export function hidden(tree: Tree, at: number): number {
  const frame = tree.frame[at] as Frame
  const value = tree.value[at] as number
  if (!frame.more || value <= 0) return 0
  const shown = (tree.reach[at] as number) - (tree.start[at] as number)
  return Math.max(0, (value - shown - (frame.self ?? 0)) / value)
}
