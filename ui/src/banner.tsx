/** What is wrong with the whole page, plainly, and what is said in passing. */
import { connection } from './api'
import { retryNow } from './live'
import { noticed, recording } from './state'

const TITLES = {
  stopped: 'The server does not answer.',
  gone: 'The recording cannot be read.',
  refused: 'The server refused this page.',
} as const

const retrying = (): string =>
  recording.value ? 'What you see is the last answer. Trying again…' : 'Trying again…'

export function Banner() {
  const now = connection.value
  return (
    <>
      <div role="alert" class="banner-place">
        {'failure' in now && (
          <div class="banner" data-state={now.state}>
            <strong>{TITLES[now.state]}</strong>
            {now.failure.message !== TITLES[now.state] && <span>{now.failure.message}</span>}
            {now.failure.hint && <span class="hint">{now.failure.hint}</span>}
            <span class="muted">{now.state !== 'refused' && retrying()}</span>
            <button onClick={retryNow}>Try now</button>
          </div>
        )}
      </div>
      <div role="status" class="notice" key={noticed.value.number}>
        {noticed.value.text}
      </div>
    </>
  )
}
