/** What went wrong, and why: each link of a chain is a button that goes to its evidence. */
import { link, query, useQuery, type Failure } from '../api'
import { recording, selection } from '../state'
import { zone } from '../timeline/plot'
import { formatTime } from '../times'
import { ask, asked, askedUntil, chosen, diagnose, progress } from './ask'
import { Conditions } from './conditions'
import './diagnosis.css'
import { explains, keyOf, tellOnce, type Document } from './document'
import { FindingView } from './finding'
import { AppliedFixes, Fix } from './fix'
import { Prose } from './parts'

export function Diagnosis() {
  const { data, error, loading } = useQuery(ask)
  return (
    <section class="diagnosis" aria-labelledby="diagnosis-title" aria-busy={loading}>
      <header>
        <h2 id="diagnosis-title">Diagnosis</h2>
        <Scope />
      </header>
      <Diagnosed />
      {loading && <Progress />}
      {error && <Trouble error={error} />}
      {data && <AppliedFixes />}
      {data && <Findings document={tellOnce(data)} />}
      {data && <Grown />}
      {data && <Downloads />}
    </section>
  )
}

/** Which span is diagnosed. It stays while links are followed, which change the selection. */
function Scope() {
  return (
    <div class="scope" role="group" aria-label="Diagnosed span">
      <button aria-pressed={chosen.value === null} onClick={() => diagnose(null)}>
        Recording
      </button>
      <button aria-pressed={chosen.value !== null} onClick={() => diagnose(selection.peek())}>
        Selection
      </button>
    </div>
  )
}

/** The span that is diagnosed, where it is not the whole recording. */
function Diagnosed() {
  const range = chosen.value
  if (!range) return null
  const [from, to] = [range.from, range.to].map((time) => formatTime(time, zone.value, 3))
  return (
    <p class="diagnosed muted">
      From {from} to {to}
    </p>
  )
}

function Progress() {
  const now = progress.value
  return (
    <p class="working" role="status">
      <progress value={now?.done} max={now?.total} aria-label="Diagnosing" />
      {now && now.total > 0
        ? `Incident ${now.done + 1} of ${now.total}…`
        : 'Reading the recording…'}
    </p>
  )
}

function Trouble({ error }: { error: Failure }) {
  return (
    <p class="trouble" role="alert">
      {error.message} {error.hint && <span class="muted">{error.hint}</span>}
    </p>
  )
}

function Findings({ document }: { document: Document }) {
  return (
    <>
      {document.findings.length + document.conditions.length === 0 && (
        <Silence missing={document.missing.length > 0} />
      )}
      <ol class="findings">
        {document.findings.map((finding, place) => (
          <li key={keyOf(finding)}>
            <FindingView finding={finding} open={place === 0} />
          </li>
        ))}
      </ol>
      <Conditions conditions={document.conditions} />
      {document.conditions.length > 0 &&
        !document.findings.some((each) => explains(each.chains[0])) && <Fix />}
      {document.missing.length > 0 && (
        <details class="missing" open={document.findings.length === 0}>
          <summary>Missing ({document.missing.length})</summary>
          <ul>
            {document.missing.map((each) => (
              <li key={each.what}>
                <strong>{each.what}</strong>: {each.consequence}
                {each.hint && '; '}
                <Prose text={each.hint} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}

/** Neither incident nor condition: worth only what could be seen, as `nodescope diagnose` says. */
function Silence({ missing }: { missing: boolean }) {
  if (missing)
    return (
      <p class="unsure">
        <strong>Nothing was found</strong>, but not everything could be seen.
      </p>
    )
  return (
    <p class="healthy">
      <strong>Nothing went wrong</strong> that this recording shows.
    </p>
  )
}

// a live recording grows every second: offer anew when it is worth it
const WORTH_MS = 30_000

function Grown() {
  const grown = (recording.value?.to_ms ?? 0) - askedUntil.value
  if (chosen.value !== null || grown < WORTH_MS) return null
  return (
    <p class="grown">
      The recording is {Math.floor(grown / 1000)} s longer now.{' '}
      <button onClick={() => diagnose(null)}>Diagnose again</button>
    </p>
  )
}

function Downloads() {
  const range = asked()
  if (!range) return null
  return (
    <p class="downloads">
      Report{' '}
      <a href={link('/api/report.html', query(range))} download>
        HTML
      </a>
      <a href={link('/api/report.md', query(range))} download>
        Markdown
      </a>
      <a href={link('/api/bundle', query(range))} download>
        Bundle
      </a>
    </p>
  )
}
