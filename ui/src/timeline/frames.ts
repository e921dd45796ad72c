/** Drawing when something changed, at most once a frame. */
import { effect, signal } from '@preact/signals'

/**
 * Draw now, and in the next frame after any signal changed that the drawing
 * read. However many changes come between two frames, it draws once.
 */
export function drawOnChange(draw: () => void): () => void {
  const frame = signal(0)
  let asked = 0
  let due = true
  const stop = effect(() => {
    frame.value
    if (!due) {
      due = true
      asked = requestAnimationFrame(() => (frame.value += 1))
      return
    }
    due = false
    draw()
  })
  return () => {
    stop()
    cancelAnimationFrame(asked)
  }
}

/** A canvas sized to its place in pixels of the screen, cleared, scaled to CSS pixels. */
export function prepare(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D {
  const ratio = devicePixelRatio || 1
  const wide = Math.max(1, Math.round(width * ratio))
  const high = Math.max(1, Math.round(height * ratio))
  if (canvas.width !== wide) canvas.width = wide
  if (canvas.height !== high) canvas.height = high
  const context = canvas.getContext('2d') as CanvasRenderingContext2D
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width, height)
  return context
}
