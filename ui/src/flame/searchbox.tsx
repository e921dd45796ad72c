/** The search field of the flame graphs and the table, with what it found. */

import { search } from './settings'

export function SearchBox({ label, said }: { label: string; said: string }) {
  return (
    <div class="search">
      <input
        type="search"
        aria-label={label}
        placeholder="Search, or /regex/"
        spellcheck={false}
        autocomplete="off"
        value={search.value}
        onInput={(event) => (search.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') search.value = ''
        }}
      />
      <span class="search-said" role="status">
        {said}
      </span>
    </div>
  )
}
