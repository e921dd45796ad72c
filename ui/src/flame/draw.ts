/** A flame graph onto a canvas: only the levels in sight, the root at the top. */

import type { Paint } from './colour'
import { levelsInSight, placeLevel, type Box, type Stretch } from './layout'
import { hidden, type Frame, type Tree } from './tree'
import { fit, visible } from './words'

export const LINE = 19
const GAP = 1
const PAD = 5
const FADED = 0.3
const FADED_TEXT = 0.75
const HIDDEN = 0.1 // of a frame; less is not worth a mark

export interface Scene {
  tree: Tree
  seen: Stretch
  /** The frame zoomed to: its callers are faded. */
  zoomed: number
  paint: (frame: Frame) => Paint
  /** Frames found by a search; the others fade. */
  found: Uint8Array | null
  /** Frames of the same function as the one pointed at. */
  same: Uint8Array | null
  hovered: number
  /** The frame the keys are at, or -1. */
  current: number
  colours: { back: string; line: string; text: string; found: string }
  font: string
}

export interface Canvas {
  context: CanvasRenderingContext2D
  width: number
  height: number
  top: number
}

/** Draw everything in sight. */
export function draw(scene: Scene, canvas: Canvas): void {
  const { context, width, height, top } = canvas
  context.fillStyle = scene.colours.back
  context.fillRect(0, 0, width, height)
  context.font = scene.font
  context.textBaseline = 'middle'
  const letter = context.measureText('m').width
  const { first, last } = levelsInSight(scene.tree.levels, LINE, top, height)
  for (let level = first; level <= last; level += 1) {
    for (const box of placeLevel(scene.tree, level, scene.seen, width)) {
      drawBox(scene, context, box, level * LINE - top, letter)
    }
  }
  context.globalAlpha = 1
}

function drawBox(
  scene: Scene,
  context: CanvasRenderingContext2D,
  box: Box,
  top: number,
  letter: number,
): void {
  const frame = scene.tree.frame[box.at] as Frame
  const paint = scene.paint(frame)
  const width = box.width > 3 ? box.width - GAP : box.width
  const strength = fadedness(scene, box)
  context.globalAlpha = strength
  context.fillStyle = paint.fill
  context.fillRect(box.left, top, width, LINE - GAP)
  // On a faded box the page's own text colour is easier to read than the box's.
  context.globalAlpha = strength < 1 ? FADED_TEXT : 1
  const ink = strength < 1 ? scene.colours.text : paint.ink
  if (box.width > 2.5 * letter + 2 * PAD) drawName(context, frame, ink, box, top, letter)
  context.globalAlpha = 1
  if (box.width > 12 && hidden(scene.tree, box.at) > HIDDEN)
    drawMore(context, paint, box.left + width, top)
  outline(scene, context, box, top, width)
}

function fadedness(scene: Scene, box: Box): number {
  if (scene.found) return scene.found[box.at] || box.at === scene.hovered ? 1 : FADED
  const above = box.level < (scene.tree.depth[scene.zoomed] as number)
  return above && box.at !== scene.hovered ? 0.55 : box.crumbs ? 0.6 : 1
}

function drawName(
  context: CanvasRenderingContext2D,
  frame: Frame,
  ink: string,
  box: Box,
  top: number,
  letter: number,
): void {
  const room = box.width - 2 * PAD
  const name = visible(frame.name)
  let text = fit(name, Math.floor(room / letter))
  // Other scripts are wider than the Latin letters the room was counted in.
  while (text.length > 1 && !isLatin(text) && context.measureText(text).width > room) {
    text = fit(text.replace(/…$/, ''), text.length - 2)
  }
  context.fillStyle = ink
  context.fillText(text, box.left + PAD, top + (LINE - GAP) / 2 + 0.5)
}

function isLatin(text: string): boolean {
  return /^[\x20-\x7e…]*$/.test(text)
}

/** A small corner: there is more below than was sent, click to fill it in. */
function drawMore(
  context: CanvasRenderingContext2D,
  paint: Paint,
  right: number,
  top: number,
): void {
  const bottom = top + LINE - GAP
  context.fillStyle = paint.ink
  context.beginPath()
  context.moveTo(right - 7, bottom)
  context.lineTo(right, bottom)
  context.lineTo(right, bottom - 7)
  context.fill()
}

function outline(
  scene: Scene,
  context: CanvasRenderingContext2D,
  box: Box,
  top: number,
  width: number,
): void {
  const strong = box.at === scene.current
  const light = box.at === scene.hovered || scene.same?.[box.at] === 1
  if (!strong && !light) return
  const thick = strong ? 2 : 1
  context.strokeStyle = strong ? scene.colours.found : scene.colours.text
  context.lineWidth = thick
  context.strokeRect(
    box.left + thick / 2,
    top + thick / 2,
    Math.max(width - thick, 1),
    LINE - GAP - thick,
  )
}

/** Ready a canvas for a size in CSS pixels, sharp on every screen. */
export function fitCanvas(element: HTMLCanvasElement, width: number, height: number): void {
  const scale = window.devicePixelRatio || 1
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)]
  if (element.width !== wide || element.height !== high) {
    element.width = wide
    element.height = high
    element.style.width = `${width}px`
    element.style.height = `${height}px`
  }
  element.getContext('2d')?.setTransform(scale, 0, 0, scale, 0, 0)
}
