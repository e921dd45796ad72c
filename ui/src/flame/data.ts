/** The flame graph from the server: pruned to what can be seen, filled in where one zooms. */

import { useEffect, useMemo } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { get, query, useQuery, type Answer, type Failure, type Params } from '../api'
import { filters, selection } from '../state'
import { BETWEEN, zoomPath } from './settings'
import { findPath, flatten, lacks, splice, type Frame, type Tree, type Weigh } from './tree'

export interface FlameAnswer {
  total: number
  unit?: string
  root: Frame
  base_total?: number
  pruned_below?: number
}

interface Wanted {
  path: string[]
  id?: string | undefined
}

interface Filled {
  key: string
  path: string[]
  root: Frame
}

export interface Flamed {
  answer: Answer<FlameAnswer>
  tree: Tree | null
  /** The frame zoomed to, as near as the tree has it. */
  zoomed: number
  loading: boolean
  /** Whether the tree is of what is selected and filtered now, not of before. */
  current: boolean
  /** Why what was left out below it stays so. */
  unfilled: Failure | null
}

/** Ask for a flame graph and, once zoomed to something that was pruned, for more of it. */
export function useFlame(path: string, extra: () => Params, weigh?: Weigh): Flamed {
  const wanted = useSignal<Wanted>({ path: [] })
  const params = (): Params => ({ ...query(selection.value, filters.value), ...extra() })
  const answer = useQuery<FlameAnswer & { key: string }>((signal) => {
    const asked = params()
    return get<FlameAnswer>(path, asked, signal).then((found) => ({ ...found, key: keyOf(asked) }))
  })
  const filled = useQuery<Filled>((signal) => {
    const { path: names, id } = wanted.value
    const asked = params()
    if (names.length === 0) return null
    const key = keyOf(asked)
    const part = id ? { id } : { path: names.join(BETWEEN) }
    return get<FlameAnswer>(path, { ...asked, ...part }, signal).then(({ root }) => ({
      key,
      path: names,
      root,
    }))
  })
  const { data } = answer
  const more = filled.data && data && filled.data.key === data.key ? filled.data : null
  const base = useMemo(() => (data ? flatten(data.root, weigh) : null), [data, weigh])
  const tree = useMemo(
    () => (data && more ? flatten(splice(data.root, more.path, more.root), weigh) : base),
    [data, base, more, weigh],
  )
  const names = zoomPath.value
  const pruned = base !== null && names.length > 0 && needsMore(base, names)
  const zoomed = useMemo(() => (tree ? findPath(tree, names).at : 0), [tree, names])
  useEffect(() => {
    const next = pruned ? names : []
    if (next.join(BETWEEN) === wanted.peek().path.join(BETWEEN)) return
    const there = tree && findPath(tree, names)
    wanted.value = { path: next, id: there?.whole ? tree?.frame[there.at]?.id : undefined }
  }, [pruned, names])
  const filling = pruned && filled.loading
  const unfilled = pruned && !filling ? filled.error : null
  const current = data !== null && data.key === keyOf(params())
  return { answer, tree, zoomed, loading: answer.loading || filling, current, unfilled }
}

const keyOf = (params: Params): string => JSON.stringify(params)

function needsMore(tree: Tree, path: string[]): boolean {
  const { at, whole } = findPath(tree, path)
  return !whole || lacks(tree, at)
}
