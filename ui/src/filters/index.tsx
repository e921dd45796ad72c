/** The filters that apply to everything at once: a chip for each, and one more. */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { FILTER_NAMES } from '../address'
import { get, query } from '../api'
import { typing } from '../help'
import { filter, filters, notice, selection } from '../state'
import { check, escaped, EXAMPLES, SUGGESTED_BY, TITLES, type FilterName } from './values'
import './filters.css'

export function FilterBar() {
  const name = useSignal<FilterName>('comm')
  const typed = useSignal('')
  const field = useRef<HTMLInputElement>(null)
  useSlash(field)
  const edit = (which: FilterName, value: string) => {
    name.value = which
    typed.value = value
    field.current?.focus()
  }
  const given = FILTER_NAMES.filter((each) => filters.value[each])
  return (
    <div class="filters" role="group" aria-label="Filters">
      {given.map((each) => (
        <Chip key={each} name={each} value={filters.value[each] ?? ''} edit={edit} />
      ))}
      {given.length > 1 && (
        <button class="quiet" onClick={() => filter({})}>
          Clear all
        </button>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (add(name.value, typed.value)) typed.value = ''
        }}
      >
        <select
          aria-label="Filter by"
          value={name.value}
          onChange={(event) => (name.value = event.currentTarget.value as FilterName)}
        >
          {(Object.keys(TITLES) as FilterName[]).map((each) => (
            <option key={each} value={each}>
              {TITLES[each]}
            </option>
          ))}
        </select>
        <Value
          field={field}
          name={name.value}
          text={typed.value}
          change={(text) => (typed.value = text)}
        />
      </form>
    </div>
  )
}

function add(name: FilterName, typed: string): boolean {
  const checked = check(name, typed)
  if ('problem' in checked) {
    notice(checked.problem)
    return false
  }
  filter({ ...filters.peek(), [name]: checked.value })
  return true
}

type ChipProps = {
  name: FilterName
  value: string
  edit: (name: FilterName, value: string) => void
}

function Chip({ name, value, edit }: ChipProps) {
  return (
    <span class="chip" data-filter={name}>
      <button title="Change this filter" onClick={() => edit(name, value)}>
        <span>{TITLES[name]}</span> <b>{value}</b>
      </button>
      <button
        aria-label={`Remove the filter ${TITLES[name]} ${value}`}
        title="Remove"
        onClick={() => filter({ ...filters.peek(), [name]: '' })}
      >
        ×
      </button>
    </span>
  )
}

type ValueProps = {
  field: { current: HTMLInputElement | null }
  name: FilterName
  text: string
  change: (text: string) => void
}

/** What to filter by; offers what ran most in the selection. */
function Value({ field, name, text, change }: ValueProps) {
  const offered = useSignal<string[]>([])
  useEffect(() => {
    offered.value = []
  }, [name])
  const offer = () => {
    void suggestions(name).then((found) => (offered.value = found))
  }
  return (
    <>
      <input
        ref={field}
        value={text}
        list="filter-offered"
        placeholder={`e.g. ${EXAMPLES[name]}`}
        aria-label={`Filter by ${TITLES[name]}`}
        title="Enter adds the filter (/ comes here)"
        spellcheck={false}
        autocomplete="off"
        onFocus={offer}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur()
        }}
      />
      <datalist id="filter-offered">
        {offered.value.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <button type="submit">Filter</button>
    </>
  )
}

const MOST_OFFERED = 30

async function suggestions(name: FilterName): Promise<string[]> {
  const by = SUGGESTED_BY[name]
  if (name === 'mode') return ['user', 'kernel']
  if (!by) return []
  try {
    const params = { ...query(selection.peek(), filters.peek()), by, limit: MOST_OFFERED }
    const entries = await get<{ name: string | number }[]>('/api/top', params)
    const names = entries.map((entry) => String(entry.name))
    return by === 'function' ? names.map(escaped) : names
  } catch {
    return [] // a filter can be typed without being offered
  }
}

/** `/` goes to the filters from anywhere. */
function useSlash(field: { current: HTMLInputElement | null }): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== '/' || typing(event.target)) return
      field.current?.focus()
      event.preventDefault()
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])
}
