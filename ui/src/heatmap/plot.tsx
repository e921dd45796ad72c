/**
 * The heatmap's picture. A range is selected by dragging, by two clicks, or by keys: arrows
 * move, Space sets one end and then the other.
 */

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { fitCanvas } from '../flame/draw'
import { Tip, type Fact } from '../flame/tip'
import { count, percent } from '../flame/words'
import type { Range } from '../range'
import { isLow } from '../screen'
import { colour, dark } from '../theme'
import { formatMoment, formatLength, ticks, type Zone } from '../times'
import {
  between,
  cellAt,
  cellOf,
  cellRange,
  move,
  placeOf,
  rowMs,
  type Cell,
  type Grid,
} from './cells'
import { drawPicture, paintCells } from './draw'
import { levels, ramp, type Measure } from './scale'

export interface Plotted {
  grid: Grid
  counts: ArrayLike<number>
  kernel: ArrayLike<number> | undefined
  measure: Measure
  selection: Range
  gaps: Range[]
  zone: Zone
  label: string
  onSelect: (range: Range) => void
}

const LEFT = 46
const BOTTOM = 20
const TOP = 2
// on a low screen the flame graph below needs the room
const HEIGHT = { usual: 168, low: 104 }
const DRAGGED = 4 // pixels; less is a click

export function Plot(shown: Plotted) {
  const { grid, selection } = shown
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(0)
  const [focused, setFocused] = useState(false)
  // Kept as times: while a recording grows, its cells move on.
  const [cursorTime, setCursorTime] = useState(selection.from)
  const [startTime, setStartTime] = useState<number | null>(null)
  const [hover, setHover] = useState<{ cell: Cell; x: number; y: number } | null>(null)
  const drag = useRef<{ cell: Cell; x: number; y: number; moved: boolean } | null>(null)
  const high = isLow() ? HEIGHT.low : HEIGHT.usual
  const inner = { width: Math.max(width - LEFT - 4, 1), height: high - BOTTOM - TOP }
  const cells = useCells(shown)
  const at = cellOf(grid, cursorTime)
  const start = startTime === null ? null : cellOf(grid, startTime)
  const pending = start ? between(grid, start, within(grid, hover?.cell ?? at)) : null
  const setCursor = (cell: Cell) => setCursorTime(cellRange(grid, cell).from)
  const setStart = (cell: Cell | null) => setStartTime(cell && cellRange(grid, cell).from)

  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  useLayoutEffect(() => {
    const element = canvas.current
    const context = element?.getContext('2d')
    if (!element || !context || width <= 0) return
    fitCanvas(element, width, high)
    context.fillStyle = colour('surface')
    context.fillRect(0, 0, width, high)
    context.save()
    context.translate(LEFT, TOP)
    context.beginPath()
    context.rect(0, 0, inner.width, inner.height)
    context.clip()
    const picture = {
      grid,
      cells,
      selection,
      pending,
      gaps: shown.gaps,
      cursor: focused ? at : null,
      colours: {
        selection: colour('selection'),
        shade: dark.value ? 'rgb(6 9 14 / 55%)' : 'rgb(255 255 255 / 62%)',
        hatch: colour('hatch'),
        back: colour('sunken'),
        cursor: colour('text'),
      },
    }
    drawPicture(context, picture, inner.width, inner.height)
    context.restore()
    drawAxes(context, shown, inner)
  })
  dark.value // drawn again in the other theme

  const cellUnder = (event: PointerEvent): Cell => {
    const bounds = canvas.current?.getBoundingClientRect()
    const [x, y] = [event.clientX - (bounds?.left ?? 0), event.clientY - (bounds?.top ?? 0)]
    return cellAt(grid, x - LEFT, y - TOP, inner.width, inner.height)
  }
  const finish = (one: Cell, end: Cell) => {
    setStart(null)
    setCursor(end)
    shown.onSelect(between(grid, one, end))
  }
  const onPointerDown = (event: PointerEvent) => {
    if (event.button !== 0) return
    drag.current = { cell: cellUnder(event), x: event.clientX, y: event.clientY, moved: false }
    canvas.current?.setPointerCapture(event.pointerId)
  }
  const onPointerMove = (event: PointerEvent) => {
    const cell = cellUnder(event)
    setHover({ cell, x: event.clientX, y: event.clientY })
    const from = drag.current
    if (!from || from.moved) return
    if (Math.hypot(event.clientX - from.x, event.clientY - from.y) < DRAGGED) return
    from.moved = true
    setStart(from.cell)
  }
  const onPointerUp = (event: PointerEvent) => {
    const from = drag.current
    drag.current = null
    if (!from) return
    const cell = cellUnder(event)
    if (from.moved) finish(start ?? from.cell, cell)
    else if (start) finish(start, cell)
    else {
      setStart(cell)
      setCursor(cell)
    }
  }
  const onKeyDown = (event: KeyboardEvent) => {
    setFocused(true)
    const far = event.shiftKey ? 5 : 1
    const step = {
      ArrowLeft: [-far, 0],
      ArrowRight: [far, 0],
      ArrowUp: [0, far],
      ArrowDown: [0, -far],
    }[event.key]
    if (step) {
      setHover(null)
      setCursor(move(grid, at, step[0] ?? 0, step[1] ?? 0))
    } else if (event.key === 'Home') setCursor({ column: 0, row: 0 })
    else if (event.key === 'End') setCursor({ column: grid.columns - 1, row: grid.rows - 1 })
    else if (event.key === ' ' || event.key === 'Enter') {
      if (start) finish(start, at)
      else setStart(at)
    } else if (event.key === 'Escape') setStart(null)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  return (
    <div class="heat-plot" ref={box}>
      <canvas
        ref={canvas}
        class="heat-canvas"
        role="application"
        aria-label={`${shown.label} Arrow keys move, Space sets one end of a range and then the other, Escape gives up.`}
        tabIndex={0}
        data-from={grid.from}
        data-column-ms={grid.column_ms}
        data-columns={grid.columns}
        data-rows={grid.rows}
        data-left={LEFT}
        data-top={TOP}
        data-width={inner.width}
        data-height={inner.height}
        onPointerDown={onPointerDown}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerLeave={() => setHover(null)}
        onKeyDown={onKeyDown}
        onFocus={(event) => setFocused(event.currentTarget.matches(':focus-visible'))}
        onBlur={() => setFocused(false)}
      />
      <p class="heat-status" role="status">
        {focused || start ? sayCell(shown, at, start, pending) : 'Drag, or click twice, to select.'}
      </p>
      {hover && !drag.current?.moved && (
        <Tip x={hover.x} y={hover.y} title={clock(shown, cellRange(grid, hover.cell).from)}>
          {describe(shown, hover.cell)}
        </Tip>
      )}
    </div>
  )
}

function within(grid: Grid, cell: Cell): Cell {
  return {
    column: Math.min(cell.column, grid.columns - 1),
    row: Math.min(cell.row, grid.rows - 1),
  }
}

/** The cells as an image, made again only when the data or the colours change. */
function useCells({ grid, counts, kernel, measure }: Plotted): HTMLCanvasElement {
  const isDark = dark.value
  return useMemo(() => {
    const image = document.createElement('canvas')
    image.width = grid.columns
    image.height = grid.rows
    const colours = ramp(measure, isDark ? 'dark' : 'light')
    const painted = paintCells(grid, levels(measure, counts, kernel), colours)
    image.getContext('2d')?.putImageData(painted, 0, 0)
    return image
  }, [grid, counts, kernel, measure, isDark])
}

function drawAxes(
  context: CanvasRenderingContext2D,
  { grid, zone }: Plotted,
  inner: { width: number; height: number },
): void {
  context.fillStyle = colour('muted')
  context.font = '11px system-ui, sans-serif'
  context.textAlign = 'right'
  for (const part of [0, 0.5, 1]) {
    context.textBaseline = part === 0 ? 'bottom' : part === 1 ? 'top' : 'middle'
    const text = part === 0 ? '0' : formatLength(part * grid.column_ms)
    context.fillText(text, LEFT - 6, TOP + (1 - part) * inner.height)
  }
  context.textAlign = 'center'
  context.textBaseline = 'top'
  const range = { from: grid.from, to: grid.from + grid.columns * grid.column_ms }
  for (const tick of ticks(range, inner.width, zone)) {
    const x = LEFT + ((tick.time - range.from) / (range.to - range.from)) * inner.width
    if (x > LEFT + inner.width - 20) continue
    context.fillRect(x, TOP + inner.height, 1, 4)
    context.fillText(tick.label, Math.max(x, LEFT + 24), TOP + inner.height + 6)
  }
}

function clock({ grid, zone }: Plotted, time: number): string {
  return formatMoment(time, zone, rowMs(grid) >= 1 ? 3 : 6)
}

function describe(shown: Plotted, cell: Cell): Fact[] {
  const place = placeOf(shown.grid, cell)
  const samples = shown.counts[place] ?? 0
  const facts: Fact[] = [
    {
      name: 'Samples',
      text: count(samples),
      note: `in ${formatLength(rowMs(shown.grid))}`,
    },
  ]
  if (shown.kernel && samples > 0) {
    const kernel = shown.kernel[place] ?? 0
    facts.push({ name: 'Kernel', text: `${count(kernel)} · ${percent(kernel / samples)}` })
  }
  return facts
}

function sayCell(shown: Plotted, cell: Cell, start: Cell | null, pending: Range | null): string {
  const place = placeOf(shown.grid, cell)
  const samples = shown.counts[place] ?? 0
  const here = `${clock(shown, cellRange(shown.grid, cell).from)} · ${count(samples)} samples`
  if (!start || !pending) return `${here} · Space or a click starts a range`
  return `from ${clock(shown, pending.from)} to ${clock(shown, pending.to)} (${formatLength(
    pending.to - pending.from,
  )}) · Space or a click ends it, Escape gives up`
}
