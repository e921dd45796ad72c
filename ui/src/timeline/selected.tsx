/** The selected span as text that can be typed over. */
import { useSignal } from '@preact/signals'
import { width } from '../range'
import { notice, select, selection } from '../state'
import { formatDate, formatClock, formatLength, parseTime, zoneName } from '../times'
import { zone } from './plot'

/** As many digits as the span needs to be told from its neighbours. */
const digits = (): number => (width(selection.value) < 10 ? 6 : 3)

export function SelectedTime() {
  const { from, to } = selection.value
  const shown = (time: number) =>
    `${formatDate(time, zone.value)} ${formatClock(time, zone.value, digits())}`
  return (
    <div
      class="selected-time"
      role="group"
      aria-label="Selected time"
      data-from={from}
      data-to={to}
    >
      <TimeField
        label="Selected from"
        text={shown(from)}
        reference={from}
        take={(time) => keep(time, to, 'from')}
      />
      <span class="muted">–</span>
      <TimeField
        label="Selected to"
        text={shown(to)}
        reference={from}
        take={(time) => keep(from, time, 'to')}
      />
      <span class="length muted">
        {zoneName(from, zone.value)} · {formatLength(to - from)}
      </span>
    </div>
  )
}

/** A start behind the end (or an end before the start) keeps the length. */
function keep(from: number, to: number, changed: 'from' | 'to'): void {
  const length = width(selection.peek())
  if (to > from) select({ from, to })
  else select(changed === 'from' ? { from, to: from + length } : { from: to - length, to })
}

type FieldProps = { label: string; text: string; reference: number; take: (time: number) => void }

function TimeField({ label, text, reference, take }: FieldProps) {
  const typed = useSignal<string | null>(null)
  const wrong = useSignal(false)
  const apply = () => {
    if (typed.value === null || typed.value === text) return reset()
    const time = parseTime(typed.value, zone.value, reference)
    wrong.value = time === null
    if (time === null) return notice(`“${typed.value}” is no time; try 12:30:05.250 or +30s`)
    reset()
    take(time)
  }
  const reset = () => {
    typed.value = null
    wrong.value = false
  }
  return (
    <input
      class="mono"
      aria-label={label}
      aria-invalid={wrong.value}
      title="A date and time, a time alone, or +30s, -2min"
      value={typed.value ?? text}
      spellcheck={false}
      autocomplete="off"
      onInput={(event) => (typed.value = event.currentTarget.value)}
      onBlur={apply}
      onKeyDown={(event) => {
        if (event.key === 'Enter') apply()
        if (event.key === 'Escape') reset()
      }}
    />
  )
}
