/** A track of lines, drawn by uPlot; the view moves over data already there. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { view } from '../state'
import { colour } from '../theme'
import { drawOnChange } from './frames'
import { pixels } from './plot'

const stepped = uPlot.paths.stepped?.({ align: 1 })

export type Series = { label: string; token: string; fill?: boolean }

/** Times at the start of each column, and a value or null for each series. */
export type LineData = { times: number[]; values: (number | null)[][] }

type Props = {
  series: Series[]
  height: number
  /** reads signals; drawn again when they change */
  data: () => LineData | null
  /** the top of the scale; else the largest value in view */
  top?: number
}

export function LinePlot({ series, height, data, top }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const key = series.map((each) => each.label + each.token).join()
  useEffect(() => {
    let plot: uPlot | null = null
    let made = ''
    let drawn: LineData | null = null
    const stop = drawOnChange(() => {
      const width = Math.max(10, Math.floor(pixels.value))
      const colours = series.map((each) => colour(each.token)).join()
      if (!plot || made !== colours) {
        plot?.destroy()
        plot = new uPlot(
          options(series, width, height, top),
          [[0], ...series.map(() => [null])],
          place.current as HTMLElement,
        )
        made = colours
        drawn = null
      }
      const { from, to } = view.value
      const now = data()
      if (plot.width !== width) plot.setSize({ width, height })
      if (now && now !== drawn) {
        plot.setData([now.times, ...now.values] as uPlot.AlignedData, false)
        drawn = now
      }
      plot.setScale('x', { min: from, max: to })
    })
    return () => {
      stop()
      plot?.destroy()
    }
  }, [key, height, top])
  return <div ref={place} class="lines" aria-hidden="true" style={{ height: `${height}px` }} />
}

function options(
  series: Series[],
  width: number,
  height: number,
  top: number | undefined,
): uPlot.Options {
  return {
    width,
    height,
    padding: [3, 0, 1, 0],
    legend: { show: false },
    cursor: { show: false },
    select: { show: false, left: 0, top: 0, width: 0, height: 0 },
    axes: [{ show: false }, { show: false }],
    scales: {
      x: { time: false },
      y: { range: (_, __, most) => [0, top ?? (most > 0 ? most * 1.05 : 1)] },
    },
    series: [
      {},
      ...series.map(({ label, token, fill }) => ({
        label,
        stroke: colour(token),
        width: 1.25,
        points: { show: false },
        // a value holds for its column: a slope between two would be invented
        ...(stepped ? { paths: stepped } : {}),
        ...(fill ? { fill: faint(colour(token)) } : {}),
      })),
    ],
  }
}

/** The same colour, mostly transparent. */
const faint = (opaque: string): string => opaque.replace('rgb(', 'rgba(').replace(')', ', 0.16)')
