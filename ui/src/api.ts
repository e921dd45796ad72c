/**
 * The client of the server's API: JSON and dense matrices, cancellable, with
 * errors as plain text. When the server stops or the archive is gone, that is
 * the state of `connection`; live.ts brings it back, and queries run again.
 */
import { effect, signal, type Signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { Filters } from './address'
import { decodeMatrix, type Matrix } from './matrix'
import type { Range } from './range'

export type { Matrix, MatrixHeader } from './matrix'

export type Span = { from_ms: number; to_ms: number; reason: string }

/** What was not recorded: of everything (`all`), or of one source, perhaps on one core. */
export type Gap = Span & { source?: string; cpu?: number | null; lost?: number | null }

export type Recording = {
  node: { hostname?: string; kernel?: string; cpus?: number; boot?: string }
  from_ms: number
  to_ms: number
  cpus: number[]
  tables: string[]
  gaps: Gap[]
  frozen: Span[]
  live: boolean
  samples: number
  version: string
  revision: string | number
}

/** An error to show: what happened, and what to do about it. */
export type Failure = { message: string; hint?: string; status?: number }

export type Params = Record<string, string | number | undefined>

export type Connection =
  { state: 'opening' | 'open' } | { state: 'stopped' | 'gone' | 'refused'; failure: Failure }

export const connection: Signal<Connection> = signal({ state: 'opening' })

/** Counts recoveries: a query that read it runs again when the server is back. */
export const revived: Signal<number> = signal(0)

export class ApiError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message)
  }
}

/** GET a JSON answer. Throws ApiError, or the abort of `signal`. */
export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  const response = await ask(path, params, 'application/json', signal)
  return (await response.json()) as T
}

/** GET a dense answer. */
export async function matrix(
  path: string,
  params: Params = {},
  signal?: AbortSignal,
): Promise<Matrix> {
  const response = await ask(path, params, 'application/x-nodescope-matrix', signal)
  return decodeMatrix(await response.arrayBuffer())
}

/** The parameters that every view takes. */
export function query(range: Range, filters: Filters = {}): Record<string, string> {
  return { from_ms: String(range.from), to_ms: String(range.to), ...filters }
}

/** The address of an answer, for downloads and links. */
export function link(path: string, params: Params = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== '') search.set(name, String(value))
  }
  const text = search.toString()
  return text ? `${path}?${text}` : path
}

async function ask(
  path: string,
  params: Params,
  accept: string,
  signal?: AbortSignal,
): Promise<Response> {
  let response: Response
  try {
    response = await fetch(link(path, params), { headers: { accept }, signal: signal ?? null })
  } catch (error) {
    if (signal?.aborted) throw error
    throw lost({
      message: 'The server does not answer.',
      hint: 'Start nodescope serve again; this page goes on by itself.',
    })
  }
  if (response.ok) return response
  throw refused(response.status, await failureOf(response))
}

async function failureOf(response: Response): Promise<Failure> {
  const status = response.status
  try {
    const body = (await response.json()) as { error?: unknown; hint?: unknown }
    return {
      status,
      message: typeof body.error === 'string' ? body.error : `The server answered ${status}.`,
      ...(typeof body.hint === 'string' ? { hint: body.hint } : {}),
    }
  } catch {
    return { status, message: `The server answered ${status} ${response.statusText}`.trim() + '.' }
  }
}

function lost(failure: Failure): ApiError {
  connection.value = { state: 'stopped', failure }
  return new ApiError(failure)
}

function refused(status: number, failure: Failure): ApiError {
  if (status === 503) connection.value = { state: 'gone', failure }
  if (status === 401 || status === 403) connection.value = { state: 'refused', failure }
  return new ApiError(failure)
}

/** What to show of anything thrown. */
export function failure(error: unknown): Failure {
  if (error instanceof ApiError) return error.failure
  return { message: error instanceof Error ? error.message : String(error) }
}

export type Answer<T> = { data: T | null; error: Failure | null; loading: boolean }

// changes that follow each other faster than this become one request
const REST_MS = 80

/**
 * Run a query, and again whenever a signal changes that it read before its
 * first `await` (and when the server is back). The old data stay while the
 * new ones load; a query that is overtaken is aborted. Return null while there
 * is nothing to ask yet.
 */
export function useQuery<T>(fn: (signal: AbortSignal) => Promise<T> | null): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ data: null, error: null, loading: true })
  const latest = useRef(fn)
  latest.current = fn
  useEffect(() => watch(() => latest.current, setAnswer), [])
  return answer
}

type Update<T> = (change: (old: Answer<T>) => Answer<T>) => void

function watch<T>(
  current: () => (signal: AbortSignal) => Promise<T> | null,
  update: Update<T>,
): () => void {
  let abort = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  let rested = true
  const tick = signal(0)
  const stop = effect(() => {
    tick.value
    if (!rested) {
      // something changed: wait a little, reading nothing else, then ask once
      rested = true
      timer = setTimeout(() => (tick.value += 1), REST_MS)
      return
    }
    rested = false
    revived.value
    abort.abort()
    abort = new AbortController()
    run(current(), abort.signal, update)
  })
  return () => {
    stop()
    clearTimeout(timer)
    abort.abort()
  }
}

function run<T>(
  fn: (signal: AbortSignal) => Promise<T> | null,
  signal: AbortSignal,
  update: Update<T>,
): void {
  const asked = fn(signal)
  update((old) => (old.loading ? old : { ...old, loading: true }))
  if (!asked) return
  asked.then(
    (data) => {
      if (!signal.aborted) update(() => ({ data, error: null, loading: false }))
    },
    (error: unknown) => {
      if (!signal.aborted) {
        update((old) => ({ data: old.data, error: failure(error), loading: false }))
      }
    },
  )
}
