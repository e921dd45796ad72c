/** The sub-second heatmap of the selection: seconds beside each other, each from the bottom up. */

import { useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import './heatmap.css'
import { matrix, query, useQuery } from '../api'
import { Empty, Loading, Trouble } from '../flame/feedback'
import { count, percent } from '../flame/words'
import { isEmpty } from '../range'
import { filters, recording, select, selection, type Range } from '../state'
import { dark } from '../theme'
import { zone } from '../timeline/plot'
import { formatMoment } from '../times'
import { cellRange, onEdges, tally, windowFor, type Grid } from './cells'
import { Plot } from './plot'
import { brightest, ramp, type Measure } from './scale'
import { measure, setMeasure, shown } from './settings'

const ROWS = 50
const COLUMNS = 1500 // as many as there are pixels

interface Heat {
  grid: Grid
  counts: ArrayLike<number>
  kernel: ArrayLike<number> | undefined
}

export function Heatmap() {
  useSignalEffect(() => {
    const known = recording.value
    const wanted = selection.value
    if (!known || isEmpty(wanted)) return
    shown.value = windowFor(shown.peek(), wanted, { from: known.from_ms, to: known.to_ms })
  })
  const answer = useQuery<Heat>((signal) => {
    const window = shown.value
    const chosen = filters.value
    if (!window) return null
    return matrix(
      '/api/heatmap',
      { ...query(window, chosen), rows: ROWS, columns: COLUMNS },
      signal,
    ).then(({ header, blocks }) => ({
      grid: {
        from: header.from_ms,
        column_ms: header.column_ms,
        columns: header.columns,
        rows: blocks.counts ? blocks.counts.length / Math.max(header.columns, 1) : ROWS,
      },
      counts: blocks.counts ?? new Uint16Array(0),
      kernel: blocks.kernel,
    }))
  })
  const { data } = answer
  const coloured = measure()
  const chosen = selection.value
  const said = useMemo(() => (data ? describe(data, chosen) : ''), [data, chosen, zone.value])
  return (
    <section class="heatmap" aria-label="Sub-second heatmap">
      <Loading on={answer.loading} />
      <header class="heat-head">
        <h2>Heatmap</h2>
        <span class="muted">{said}</span>
        <div class="heat-tools">
          {data && <Scale measure={coloured} most={brightest(data.counts)} />}
          <div role="group" aria-label="Colours">
            <button aria-pressed={coloured === 'count'} onClick={() => setMeasure('count')}>
              Samples
            </button>
            <button aria-pressed={coloured === 'kernel'} onClick={() => setMeasure('kernel')}>
              Kernel share
            </button>
          </div>
          <div role="group" aria-label="Zoom of the heatmap">
            <button title="Show more around" aria-label="Zoom out" onClick={zoomOut}>
              −
            </button>
            <button title="Show the selection alone" onClick={() => zoomTo(selection.peek())}>
              Fit
            </button>
          </div>
        </div>
      </header>
      {answer.error && <Trouble failure={answer.error} />}
      {data && data.grid.columns > 0 && (
        <Plot
          grid={data.grid}
          counts={data.counts}
          kernel={data.kernel}
          measure={coloured}
          selection={selection.value}
          gaps={gapsIn()}
          zone={zone.value}
          label="Samples by second and part of a second."
          onSelect={select}
        />
      )}
      {data && data.grid.columns === 0 && <Empty>Nothing was recorded here.</Empty>}
    </section>
  )
}

function gapsIn(): Range[] {
  return (recording.value?.gaps ?? []).map(({ from_ms, to_ms }) => ({ from: from_ms, to: to_ms }))
}

function zoomTo(range: Range): void {
  const known = recording.peek()
  if (!known || isEmpty(range)) return
  shown.value = {
    from: Math.max(Math.floor(range.from / 1000) * 1000, Math.floor(known.from_ms / 1000) * 1000),
    to: Math.min(Math.ceil(range.to / 1000) * 1000, known.to_ms),
  }
}

function zoomOut(): void {
  const window = shown.peek()
  if (!window) return
  const more = (window.to - window.from) / 2
  zoomTo({ from: window.from - more, to: window.to + more })
}

/** The selection in words; what is shown around it is not counted. */
function describe({ grid, counts, kernel }: Heat, chosen: Range): string {
  const sum = tally(grid, chosen, counts, kernel)
  if (!sum.most) return 'no samples selected'
  const busiest = formatMoment(cellRange(grid, sum.most).from, zone.value, 3)
  const share = kernel ? `, ${percent(sum.kernel / sum.samples)} kernel` : ''
  const about = onEdges(grid, chosen) ? '' : 'about '
  return `${about}${count(sum.samples)} samples selected${share} · most at ${busiest}`
}

function Scale(scale: { measure: Measure; most: number }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const isDark = dark.value
  useEffect(() => {
    const context = canvas.current?.getContext('2d')
    if (!context) return
    const image = new ImageData(256, 1)
    new Uint32Array(image.data.buffer).set(ramp(scale.measure, isDark ? 'dark' : 'light'))
    context.putImageData(image, 0, 0)
  }, [scale.measure, isDark])
  return (
    <span class="heat-scale muted">
      0 <canvas ref={canvas} width={256} height={1} aria-hidden="true" />{' '}
      {scale.measure === 'count' ? `${count(scale.most)}+` : '100 %'}
    </span>
  )
}
