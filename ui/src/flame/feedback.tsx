/** What stands where data would: an error with its hint, or that there is nothing. */

import type { Failure } from '../api'

export function Trouble({ failure }: { failure: Failure }) {
  return (
    <p class="trouble" role="alert">
      {failure.message}
      {failure.hint && <span class="muted"> {failure.hint}</span>}
    </p>
  )
}

export function Empty({ children }: { children: string }) {
  return <p class="empty muted">{children}</p>
}

/** A thin line at the top while something loads; the old picture stays. */
export function Loading({ on }: { on: boolean }) {
  return <div class={on ? 'loading on' : 'loading'} aria-hidden="true" />
}
