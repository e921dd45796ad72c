/** The heatmap onto a canvas: cells as the pixels of a small image, scaled without blur. */

import { patches, type Cell, type Grid } from './cells'
import type { Range } from '../range'

/** The cells as an image of one pixel each, the start of a second at the bottom. */
export function paintCells(grid: Grid, levels: Uint8Array, ramp: Uint32Array): ImageData {
  const image = new ImageData(grid.columns, grid.rows)
  const pixels = new Uint32Array(image.data.buffer)
  for (let column = 0; column < grid.columns; column += 1) {
    for (let row = 0; row < grid.rows; row += 1) {
      const level = levels[column * grid.rows + row] ?? 0
      pixels[(grid.rows - 1 - row) * grid.columns + column] = ramp[level] ?? 0
    }
  }
  return image
}

export interface Picture {
  grid: Grid
  cells: HTMLCanvasElement
  selection: Range | null
  /** Where the other end of a range is being looked for. */
  pending: Range | null
  gaps: Range[]
  cursor: Cell | null
  colours: { selection: string; shade: string; hatch: string; back: string; cursor: string }
}

export function drawPicture(
  context: CanvasRenderingContext2D,
  picture: Picture,
  width: number,
  height: number,
): void {
  const { grid, colours } = picture
  context.imageSmoothingEnabled = false
  context.drawImage(picture.cells, 0, 0, grid.columns, grid.rows, 0, 0, width, height)
  for (const gap of picture.gaps) drawGap(context, picture, gap, width, height)
  const marked = picture.pending ?? picture.selection
  if (marked) drawRange(context, grid, marked, colours, width, height)
  if (picture.cursor) drawCursor(context, grid, picture.cursor, colours, width, height)
}

/** Everything outside of the range is shaded; its border is drawn. */
function drawRange(
  context: CanvasRenderingContext2D,
  grid: Grid,
  range: Range,
  colours: Picture['colours'],
  width: number,
  height: number,
): void {
  const parts = patches(grid, range).map((patch) => ({
    x: (patch.column / grid.columns) * width,
    y: (patch.top / grid.rows) * height,
    width: (patch.columns / grid.columns) * width,
    height: (patch.rows / grid.rows) * height,
  }))
  if (parts.length === 0 || isAll(grid, range)) return
  const inside = new Path2D()
  for (const part of parts) inside.rect(part.x, part.y, part.width, part.height)
  const outside = new Path2D()
  outside.rect(0, 0, width, height)
  outside.addPath(inside)
  context.save()
  context.fillStyle = colours.shade
  context.fill(outside, 'evenodd')
  // Lines between the parts would cut the range in pieces: only its outer half is drawn.
  context.clip(outside, 'evenodd')
  context.strokeStyle = colours.selection
  context.lineWidth = 4
  context.stroke(inside)
  context.restore()
}

/** Whether a range is all that is shown, but for parts of the first and last second. */
function isAll(grid: Grid, range: Range): boolean {
  const end = grid.from + grid.columns * grid.column_ms
  return range.from < grid.from + grid.column_ms && range.to > end - grid.column_ms
}

function drawGap(
  context: CanvasRenderingContext2D,
  { grid, colours }: Picture,
  gap: Range,
  width: number,
  height: number,
): void {
  context.save()
  const area = new Path2D()
  for (const patch of patches(grid, gap)) {
    area.rect(
      (patch.column / grid.columns) * width,
      (patch.top / grid.rows) * height,
      (patch.columns / grid.columns) * width,
      (patch.rows / grid.rows) * height,
    )
  }
  context.clip(area)
  context.fillStyle = colours.back
  context.fillRect(0, 0, width, height)
  context.strokeStyle = colours.hatch
  context.lineWidth = 1
  context.beginPath()
  for (let x = -height; x < width; x += 7) {
    context.moveTo(x, height)
    context.lineTo(x + height, 0)
  }
  context.stroke()
  context.restore()
}

function drawCursor(
  context: CanvasRenderingContext2D,
  grid: Grid,
  cell: Cell,
  colours: Picture['colours'],
  width: number,
  height: number,
): void {
  const wide = width / grid.columns
  const high = height / grid.rows
  const left = cell.column * wide
  const top = (grid.rows - 1 - cell.row) * high
  context.lineWidth = 1
  context.strokeStyle = colours.back
  context.strokeRect(left - 1.5, top - 1.5, Math.max(wide, 2) + 3, Math.max(high, 2) + 3)
  context.strokeStyle = colours.cursor
  context.strokeRect(left - 0.5, top - 0.5, Math.max(wide, 2) + 1, Math.max(high, 2) + 1)
}
