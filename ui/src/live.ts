/**
 * Keeps `recording` current: reads it, follows it by server-sent events while
 * it grows, and when the server or the archive is gone asks again, ever less
 * often, until it is back.
 */
import { connection, get, revived, type Recording } from './api'
import { arrive, recording } from './state'

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 8_000

let wait = FIRST_WAIT_MS
let timer: ReturnType<typeof setTimeout> | undefined
let source: EventSource | undefined

/** Start; the page calls this once. */
export function stayLive(): void {
  connection.subscribe(({ state }) => {
    if (state === 'stopped' || state === 'gone') retryLater()
  })
  // a browser keeps six connections to one server: a tab nobody looks at holds none
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) hangUp()
    else if (connection.peek().state === 'open') void read()
  })
  void read()
}

function hangUp(): void {
  source?.close()
  source = undefined
}

/** Ask now instead of at the next turn. */
export function retryNow(): void {
  clearTimeout(timer)
  timer = undefined
  wait = FIRST_WAIT_MS
  void read()
}

function retryLater(): void {
  hangUp()
  if (timer !== undefined) return
  timer = setTimeout(() => {
    timer = undefined
    void read()
  }, wait)
  wait = Math.min(wait * 2, LONGEST_WAIT_MS)
}

async function read(): Promise<void> {
  const before = connection.peek().state
  try {
    arrive(await get<Recording>('/api/recording'))
  } catch {
    // `get` has set the connection's state; asking again while it stays the
    // same state is not seen by the subscription above
    if (connection.peek().state !== 'refused') retryLater()
    return
  }
  wait = FIRST_WAIT_MS
  connection.value = { state: 'open' }
  if (before === 'stopped' || before === 'gone') revived.value += 1
  listen()
}

function listen(): void {
  if (source || document.hidden) return
  const opened = new EventSource('/api/follow')
  source = opened
  opened.addEventListener('recording', (event) => {
    grow(JSON.parse((event as MessageEvent<string>).data) as Partial<Recording>)
  })
  opened.addEventListener('gone', () => void read())
  opened.addEventListener('error', () => {
    // the browser reconnects by itself only from some errors: ask why instead
    opened.close()
    if (source === opened) source = undefined
    if (connection.peek().state === 'open') void read()
  })
}

/** Growth brings new gaps and frozen ranges at times: then read all of it again. */
function grow(news: Partial<Recording>): void {
  const known = recording.peek()
  if (!known || (news.revision === known.revision && news.live === known.live)) return
  arrive({ ...known, ...news })
  refreshSoon()
}

let refreshing: ReturnType<typeof setTimeout> | undefined
const REFRESH_MS = 10_000

function refreshSoon(): void {
  refreshing ??= setTimeout(() => {
    refreshing = undefined
    if (connection.peek().state === 'open') void read()
  }, REFRESH_MS)
}
