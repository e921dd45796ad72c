/** Search in a flame graph: which frames match, and how much of the samples they have. */

import type { Frame, Tree } from './tree'

export interface Found {
  /** 1 for each frame that matches. */
  frames: Uint8Array
  matches: number
  /** Samples below a match; one below several counts once. */
  samples: number
}

export type Test = (text: string) => boolean

/**
 * A plain text is looked for anywhere, without regard to case; `/…/` is a regular
 * expression. Returns why not, if it is not one.
 */
export function compile(asked: string): Test | string {
  const text = asked.trim()
  if (text === '') return () => false
  if (text.length > 2 && text.startsWith('/') && text.endsWith('/')) {
    try {
      const pattern = new RegExp(text.slice(1, -1), 'i')
      return (name) => pattern.test(name)
    } catch {
      return 'not a regular expression'
    }
  }
  const wanted = text.toLowerCase()
  return (name) => name.toLowerCase().includes(wanted)
}

/** Matches by name or module in the subtree of `root`. Each name is tested once. */
export function find(tree: Tree, test: Test, root = 0): Found {
  const frames = new Uint8Array(tree.size)
  const known = new Map<string, boolean>()
  let matches = 0
  let samples = 0
  let counted = root // what is before this is below a match already
  for (let at = root; at < (tree.end[root] as number); at += 1) {
    if (!fits(tree.frame[at] as Frame, test, known) || at === 0) continue
    frames[at] = 1
    matches += 1
    if (at >= counted) {
      samples += tree.value[at] as number
      counted = tree.end[at] as number
    }
  }
  return { frames, matches, samples }
}

function fits(frame: Frame, test: Test, known: Map<string, boolean>): boolean {
  const key = `${frame.name}\u0000${frame.module ?? ''}`
  let answer = known.get(key)
  if (answer === undefined) {
    answer = test(frame.name) || (frame.module !== undefined && test(frame.module))
    known.set(key, answer)
  }
  return answer
}

/** The frame of this function with most samples; -1 if there is none. */
export function widest(tree: Tree, name: string): number {
  let found = -1
  for (let at = 1; at < tree.size; at += 1) {
    if (tree.frame[at]?.name !== name) continue
    if (found < 0 || (tree.value[at] ?? 0) > (tree.value[found] ?? 0)) found = at
  }
  return found
}

/** All frames of the same function, and the samples below any of them, counted once. */
export function same(tree: Tree, at: number): Found {
  const { name, module } = tree.frame[at] as Frame
  const frames = new Uint8Array(tree.size)
  let matches = 0
  let samples = 0
  let counted = 0
  for (let here = 0; here < tree.size; here += 1) {
    const frame = tree.frame[here] as Frame
    if (frame.name !== name || frame.module !== module) continue
    frames[here] = 1
    matches += 1
    if (here >= counted) {
      samples += tree.value[here] as number
      counted = tree.end[here] as number
    }
  }
  return { frames, matches, samples }
}
