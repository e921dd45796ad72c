/** The strip of the cores: a line for each, its colour the peak share. */
import { computed } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { parseCpus } from '../cpus'
import { filter, filters, recording, view } from '../state'
import { colour, dark } from '../theme'
import { coreState, coreTiles } from './cores'
import { hottest, type Cores, type Hot } from './shares'
import { drawOnChange, prepare } from './frames'
import {
  lineHeight,
  linesOf,
  paint,
  PEGGED,
  peggedRuns,
  rampOf,
  type Line,
  type Run,
} from './lines'
import { pixels, rowCursor } from './plot'
import { pixelAt } from './scale'
import { best, type Tile } from './tiles'

/** The cores the filter names; null for all. */
const only = computed(() => (filters.value.cpu ? parseCpus(filters.value.cpu) : null))

const cpus = computed(() => {
  const known = coreTiles.list.value.at(-1)?.data.cpus
  return known && known.length > 0 ? known : (recording.value?.cpus ?? [])
})

export const lines = computed(() => linesOf(cpus.value, only.value))
export const stripHeight = computed(() =>
  Math.max(22, lines.value.length * lineHeight(lines.value.length)),
)

/** The line at a height in the strip. */
export function lineAt(y: number): Line | null {
  const each = lineHeight(lines.value.length)
  return lines.value[Math.floor(y / each)] ?? null
}

export function Strip() {
  const place = useRef<HTMLCanvasElement>(null)
  useEffect(() => drawOnChange(() => place.current && draw(place.current)), [])
  return (
    <canvas
      ref={place}
      class="strip"
      style={{ height: `${stripHeight.value}px` }}
      data-rows={lines.value.length}
      data-columns={coreTiles.list.value.at(-1)?.data.columns}
    />
  )
}

type Image = { canvas: HTMLCanvasElement; key: string; lines: Line[] }

// painting a tile takes a millisecond or two; stretching what is painted takes none
const painted = new WeakMap<Tile<Cores>, Image>()

function imageOf(tile: Tile<Cores>): HTMLCanvasElement {
  const key = `${dark.value}`
  const known = painted.get(tile)
  if (known && known.key === key && known.lines === lines.value) return known.canvas
  const canvas = known?.canvas ?? document.createElement('canvas')
  canvas.width = Math.max(1, tile.data.columns)
  canvas.height = Math.max(1, lines.value.length)
  const spread = tile.columnMs > 2000
  const image = paint(tile.data, linesFor(tile), rampOf(dark.value), spread)
  if (image.length > 0) {
    const bytes = new Uint8ClampedArray(image.buffer)
    canvas.getContext('2d')?.putImageData(new ImageData(bytes, tile.data.columns), 0, 0)
  }
  painted.set(tile, { canvas, key, lines: lines.value })
  return canvas
}

/** A tile of another time may have other cores in its rows. */
function linesFor(tile: Tile<Cores>): Line[] {
  if (tile.data.cpus === cpus.value) return lines.value
  const rowOf = new Map(tile.data.cpus.map((cpu, row) => [cpu, row]))
  return lines.value.map((line) => ({
    cpus: line.cpus,
    rows: line.cpus.flatMap((cpu) => rowOf.get(cpu) ?? []),
  }))
}

function draw(canvas: HTMLCanvasElement): void {
  const width = pixels.value
  const height = stripHeight.value
  const range = view.value
  const context = prepare(canvas, width, height)
  context.imageSmoothingEnabled = false
  const coarseFirst = [...coreTiles.list.value].sort((a, b) => b.columnMs - a.columnMs)
  for (const tile of coarseFirst) {
    const left = pixelAt(range, width, tile.range.from)
    const right = pixelAt(range, width, tile.range.to)
    if (right < 0 || left > width) continue
    stretch(context, imageOf(tile), left, right, width, height)
  }
  const each = lineHeight(lines.value.length)
  drawHalos(context, each)
  const marked = lines.value.findIndex((line) => line.cpus.includes(rowCursor.value ?? -1))
  if (marked >= 0) {
    context.strokeStyle = colour('text')
    context.strokeRect(0.5, marked * each - 0.5, width - 1, each + 1)
  }
}

/** Draw the part of an image that is seen; the whole of a deep zoom has too many pixels. */
function stretch(
  context: CanvasRenderingContext2D,
  image: HTMLCanvasElement,
  left: number,
  right: number,
  width: number,
  height: number,
): void {
  const scale = image.width / (right - left)
  const first = Math.max(0, Math.floor(-left * scale))
  const last = Math.min(image.width, Math.ceil((width - left) * scale))
  if (last <= first) return
  const from = left + first / scale
  const to = left + last / scale
  // what a finer piece does not know must not show the coarser one below it
  context.clearRect(from, 0, to - from, height)
  context.drawImage(image, first, 0, last - first, image.height, from, 0, to - from, height)
}

/** Around pegged seconds that are few and small: a light that the eye finds at once. */
function drawHalos(context: CanvasRenderingContext2D, each: number): void {
  const width = pixels.value
  const range = view.value
  const tile = best(coreTiles.list.value, range, width)
  if (!tile || each > 6) return
  const found = runsOf(tile)
  if (found.length > MOST_HALOS) return
  const glow = colour('pegged')
  for (const { line, from, to } of found) {
    const left = pixelAt(range, width, tile.range.from + from * tile.columnMs)
    const right = pixelAt(range, width, tile.range.from + to * tile.columnMs)
    if (right < -8 || left > width + 8 || right - left > 60) continue
    const [middle, y] = [(left + right) / 2, (line + 0.5) * each]
    const half = Math.max(2.5, (right - left) / 2)
    context.fillStyle = glow
    for (const [room, alpha] of HALO) {
      context.globalAlpha = alpha
      context.beginPath()
      context.ellipse(middle, y, half + room, each / 2 + room, 0, 0, 2 * Math.PI)
      context.fill()
    }
    context.globalAlpha = 1
    context.fillRect(middle - half, y - each / 2 - 0.5, 2 * half, each + 1)
  }
}

const MOST_HALOS = 300

/** Pixels around a pegged second, and how much of the light reaches there. */
const HALO: [number, number][] = [
  [7, 0.13],
  [5, 0.16],
  [3, 0.25],
]
const runs = new WeakMap<Tile<Cores>, { lines: Line[]; found: Run[] }>()

function runsOf(tile: Tile<Cores>): Run[] {
  const known = runs.get(tile)
  if (known && known.lines === lines.value) return known.found
  const found = peggedRuns(tile.data, linesFor(tile), MOST_HALOS + 1)
  runs.set(tile, { lines: lines.value, found })
  return found
}

/** The cores with the longest pegged times in view. */
const hot = computed<{ list: Hot[]; columnMs: number }>(() => {
  const tile = best(coreTiles.list.value, view.value, pixels.value)
  if (!tile) return { list: [], columnMs: 0 }
  const list = hottest(tile, view.value, PEGGED, 4)
  return { list, columnMs: tile.columnMs }
})

/** Beside the strip: which cores they are, the hottest by name. */
export function StripGutter() {
  const pegged = hot.value.list.filter((each) => each.columns > 0)
  const shown = lines.value.reduce((count, line) => count + line.cpus.length, 0)
  const all = cpus.value.length
  return (
    <>
      <span class="muted">
        {shown === all ? `${all} cores` : `${shown} of ${all} cores`}, {coreState.value}
      </span>
      {pegged.length > 0 && shown > 1 && (
        <span class="hot">
          <span class="muted">pegged:</span>
          {pegged.map(({ cpu, columns }) => (
            <button
              key={cpu}
              class="textual"
              title={`Core ${cpu} was at 95 % or more in ${columns} columns; show it alone`}
              aria-label={`Pegged core ${cpu}: filter everything to it`}
              onClick={() => filter({ ...filters.peek(), cpu: String(cpu) })}
            >
              core {cpu}
            </button>
          ))}
        </span>
      )}
      {shown < all && (
        <button class="textual" onClick={() => filter({ ...filters.peek(), cpu: '' })}>
          all cores
        </button>
      )}
      {shown === all && <Ends />}
    </>
  )
}

/** The first and last core, at the ends of the strip. */
function Ends() {
  const first = lines.value[0]?.cpus[0]
  const last = lines.value.at(-1)?.cpus.at(-1)
  return (
    <span class="ends" aria-hidden="true" style={{ height: `${stripHeight.value}px` }}>
      <i>{first}</i>
      <i>{last}</i>
    </span>
  )
}
