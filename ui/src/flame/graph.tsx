/**
 * One flame graph on a canvas: pointer, keys, zoom and a tree of text for those who do
 * not see the picture. What it shows and how it is coloured is its user's business.
 */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { colour, dark } from '../theme'
import type { Paint } from './colour'
import { draw, fitCanvas, LINE, type Scene } from './draw'
import { deepest, frameAt, stretchOf, type Stretch } from './layout'
import { Menu, type Action } from './menu'
import { Outline } from './outline'
import { same, type Found } from './search'
import { BETWEEN } from './settings'
import { Tip, type Fact } from './tip'
import { findPath, pathOf, type Frame, type Tree } from './tree'
import { visible } from './words'
import { walk, type Step } from './walk'

/** A frame brought into sight once for each request. */
export interface Brought {
  wanted: object
  tree: Tree
  at: number
}

export interface Shown {
  label: string
  tree: Tree
  zoomed: number
  found: Found | null
  brought?: Brought | null
  paint: (frame: Frame) => Paint
  /** What a frame is, for the tip, the status line and the outline. */
  describe: (at: number) => Fact[]
  summary: (at: number) => string
  actions: (at: number) => Action[]
  onZoom: (at: number) => void
}

const KEYS: Record<string, Step> = {
  ArrowDown: 'in',
  ArrowUp: 'out',
  ArrowLeft: 'left',
  ArrowRight: 'right',
  Home: 'first',
  End: 'last',
}
const FONT_SIZE = 12
const MOVE_MS = 140
const HINT = 'Click zooms, right click does more, arrow keys walk.'

export function Graph(shown: Shown) {
  const { tree, zoomed } = shown
  const stage = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const size = useSize(stage)
  const [current, setCurrent] = useState(zoomed)
  const [focused, setFocused] = useState(false)
  const [hover, setHover] = useState<{ at: number; x: number; y: number } | null>(null)
  const [menu, setMenu] = useState<{ at: number; x: number; y: number } | null>(null)
  const levels = useMemo(() => deepest(tree, zoomed) + 1, [tree, zoomed])
  const hovered = hover && hover.at < tree.size ? hover.at : -1
  const alike = useMemo(() => (hovered > 0 ? same(tree, hovered) : null), [tree, hovered])
  const at = Math.min(current, tree.size - 1)
  const currentPath = useRef<string[]>([])
  const zoomedPath = useMemo(() => pathOf(tree, zoomed).join(BETWEEN), [tree, zoomed])

  // What the drawing needs, kept where an animation finds the latest of it.
  const scene = useRef<Scene>(null as unknown as Scene)
  const seen = useRef<Stretch>(stretchOf(tree, zoomed))
  scene.current = {
    tree,
    zoomed,
    seen: seen.current,
    paint: shown.paint,
    found: shown.found && shown.found.matches > 0 ? shown.found.frames : null,
    same: alike && alike.matches > 1 ? alike.frames : null,
    hovered,
    current: focused || (shown.brought?.tree === tree && at === shown.brought.at) ? at : -1,
    colours: {
      back: colour('surface'),
      line: colour('line'),
      text: colour('text'),
      found: colour('accent'),
    },
    font: `${FONT_SIZE}px ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, monospace`,
  }

  const paint = () => {
    const element = canvas.current
    const context = element?.getContext('2d')
    const box = stage.current
    if (!element || !context || !box || size.width <= 0) return
    fitCanvas(element, size.width, size.height)
    draw(
      { ...scene.current, seen: seen.current },
      { context, width: size.width, height: size.height, top: box.scrollTop },
    )
  }
  const latest = useRef(paint)
  latest.current = paint

  useMoving(tree, zoomed, seen, latest)
  useLayoutEffect(() => paint())
  useEffect(() => {
    // A recording that grows brings a new tree every other second: stay where one was.
    setCurrent(findPath(tree, currentPath.current).at)
    setHover(null)
  }, [tree])
  useEffect(() => {
    setCurrent(zoomed)
    scrollToLevel(stage.current, tree.depth[zoomed] ?? 0, true)
  }, [zoomedPath])
  useEffect(() => {
    const wanted = shown.brought?.at ?? -1
    if (wanted < 0) return
    setCurrent(wanted)
    stage.current?.parentElement?.scrollIntoView({ block: 'nearest' })
    scrollToLevel(stage.current, tree.depth[wanted] ?? 0, true)
  }, [shown.brought])
  useEffect(() => {
    currentPath.current = pathOf(tree, at)
  })
  dark.value // drawn again in the other theme

  const place = (event: MouseEvent) => {
    const box = stage.current
    if (!box) return -1
    const bounds = box.getBoundingClientRect()
    const level = Math.floor((event.clientY - bounds.top + box.scrollTop) / LINE)
    return frameAt(tree, level, seen.current, size.width, event.clientX - bounds.left)
  }
  const zoom = (frame: number) => frame >= 0 && shown.onZoom(frame)

  const onKeyDown = (event: KeyboardEvent) => {
    setFocused(true)
    const step = KEYS[event.key]
    if (step) {
      const next = walk(tree, at, step, zoomed)
      setCurrent(next)
      scrollToLevel(stage.current, tree.depth[next] ?? 0, false)
    } else if (event.key === 'Enter' || event.key === ' ') zoom(at)
    else if (event.key === 'Escape') shown.onZoom(0)
    else if (event.key === 'Backspace') shown.onZoom(Math.max(0, tree.parent[zoomed] ?? 0))
    else if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) openMenu()
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  const openMenu = () => {
    const bounds = stage.current?.getBoundingClientRect()
    if (!bounds) return
    const width = seen.current.to - seen.current.from
    const left = (((tree.start[at] ?? 0) - seen.current.from) / width) * size.width
    const top = ((tree.depth[at] ?? 0) + 1) * LINE - (stage.current?.scrollTop ?? 0)
    setMenu({ at, x: bounds.left + Math.max(0, left) + 8, y: bounds.top + top })
  }

  return (
    <div
      class="flame-graph"
      data-frames={tree.size}
      data-zoom={zoomed}
      data-current={at ? nameOf(tree, at) : undefined}
    >
      <div
        class={focused ? 'flame-stage focused' : 'flame-stage'}
        ref={stage}
        style={{ height: `min(${levels * LINE + 2}px, max(300px, 64vh))` }}
        onScroll={() => latest.current()}
        onPointerMove={(event) => {
          const frame = place(event)
          setHover(frame < 0 ? null : { at: frame, x: event.clientX, y: event.clientY })
        }}
        onPointerLeave={() => setHover(null)}
        onClick={(event) => {
          zoom(place(event))
          stage.current?.parentElement?.querySelector('ul')?.focus({ preventScroll: true })
          setFocused(false) // the ring is for those who came by keys
        }}
        onContextMenu={(event) => {
          const frame = place(event)
          if (frame < 0) return
          event.preventDefault()
          setHover(null)
          setMenu({ at: frame, x: event.clientX, y: event.clientY })
        }}
      >
        <div class="flame-space" style={{ height: `${levels * LINE}px` }}>
          <canvas ref={canvas} aria-hidden="true" class={hovered >= 0 ? 'pointing' : ''} />
        </div>
      </div>
      <Outline
        label={shown.label}
        tree={tree}
        zoomed={zoomed}
        current={at}
        summary={shown.summary}
        onKeyDown={onKeyDown}
        onFocus={setFocused}
        onChoose={(frame) => {
          setCurrent(frame)
          zoom(frame)
        }}
      />
      <p class="flame-status" role="status">
        {focused || at !== 0 ? shown.summary(at) : HINT}
      </p>
      {hover && hovered >= 0 && !menu && (
        <Tip x={hover.x} y={hover.y} title={visible(nameOf(tree, hovered))}>
          {shown.describe(hovered)}
        </Tip>
      )}
      {menu && (
        <Menu
          x={menu.x}
          y={menu.y}
          label={visible(nameOf(tree, menu.at))}
          actions={shown.actions(menu.at)}
          onClose={() => setMenu(null)}
        />
      )}
    </div>
  )
}

const nameOf = (tree: Tree, at: number): string => tree.frame[at]?.name ?? ''

/** The inner size of an element, as it changes. */
function useSize(element: { current: HTMLElement | null }): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 })
  useLayoutEffect(() => {
    const watched = element.current
    if (!watched) return
    const observer = new ResizeObserver(() => {
      setSize({ width: watched.clientWidth, height: watched.clientHeight })
    })
    observer.observe(watched)
    return () => observer.disconnect()
  }, [element])
  return size
}

/** Glide from the stretch in sight to the one zoomed to; at once for those who prefer it. */
function useMoving(
  tree: Tree,
  zoomed: number,
  seen: { current: Stretch },
  paint: { current: () => void },
): void {
  const before = useRef(tree)
  useLayoutEffect(() => {
    const from = seen.current
    const to = stretchOf(tree, zoomed)
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches
    const other = before.current !== tree
    before.current = tree
    if (still || other) {
      seen.current = to
      paint.current()
      return
    }
    const started = performance.now()
    let frame = 0
    const step = (now: number) => {
      const part = Math.min(1, Math.max(0, (now - started) / MOVE_MS))
      const eased = 1 - (1 - part) ** 3
      seen.current = {
        from: from.from + (to.from - from.from) * eased,
        to: from.to + (to.to - from.to) * eased,
      }
      paint.current()
      if (part < 1) frame = requestAnimationFrame(step)
    }
    frame = requestAnimationFrame(step)
    return () => {
      cancelAnimationFrame(frame)
      seen.current = to
    }
  }, [tree, zoomed])
}

/** Bring a level into sight; `above` leaves room for a few callers. */
function scrollToLevel(stage: HTMLElement | null, level: number, above: boolean): void {
  if (!stage) return
  const top = level * LINE
  const room = above ? 3 * LINE : LINE
  if (top < stage.scrollTop + room || top + 2 * LINE > stage.scrollTop + stage.clientHeight) {
    stage.scrollTop = Math.max(0, above ? top - room : top - stage.clientHeight / 2)
  }
}
