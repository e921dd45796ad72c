/** The plan of a fix: steps, files, what is refused. Commands are for copying; nothing is applied. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError, get } from '../api'
import { visible } from '../flame/words'
import { recording } from '../state'
import { zone } from '../timeline/plot'
import { formatMoment } from '../times'
import { Command } from './parts'
import { isWorking, joinCommand, type AppliedFix, type FixAnswer, type Fixes } from './fixdocument'

const POLL_MS = 2000

/** A button that asks for the plan, and the plan. */
export function Fix() {
  const [answer, setAnswer] = useState<FixAnswer | null>(null)
  const [error, setError] = useState('')
  const [asking, setAsking] = useState(false)
  const ask = () => {
    setAsking(true)
    setError('')
    get<FixAnswer>('/api/fix/plan')
      .then(setAnswer)
      .catch((trouble: unknown) =>
        setError(trouble instanceof ApiError ? trouble.message : 'The plan could not be made.'),
      )
      .finally(() => setAsking(false))
  }
  return (
    <section class="fix" aria-label="Fix">
      <button class="ask" onClick={ask} disabled={asking} aria-busy={asking}>
        {asking ? 'Planning…' : 'Fix…'}
      </button>
      {error && (
        <p class="trouble" role="alert">
          {error}
        </p>
      )}
      {answer && <Answer answer={answer} />}
    </section>
  )
}

function Answer({ answer }: { answer: FixAnswer }) {
  const { plan, why, command, shown } = answer
  if (!plan)
    return (
      <div class="plan">
        <p>No plan can be made here: {visible(why ?? 'not known why')}. On the node:</p>
        <Command text={command} />
      </div>
    )
  return (
    <div class="plan" data-plan={plan.id}>
      <p class="muted">
        Plan {plan.id}, valid until {formatMoment(Date.parse(plan.expires), zone.value, 0)}. This
        page applies nothing:
      </p>
      {plan.steps.length > 0 && (
        <Command text={`${command} --json > plan.json && nodescope fix apply plan.json`} />
      )}
      {plan.steps.length === 0 && <p>Nothing to do: no step would help, or none is allowed.</p>}
      <ol class="steps">
        {plan.steps.map((step, place) => (
          <li key={place} data-kind={step.kind}>
            <b>{visible(shown?.[place]?.title ?? step.kind)}</b>
            <div class="why">{visible(step.why)}</div>
            <ul>
              {step.changes.map((change) => (
                <li key={change}>{visible(change)}</li>
              ))}
              {shown?.[place]?.expect.map((line) => (
                <li key={line}>Expected: {visible(line)}</li>
              ))}
              <li>{step.undo === 'never' ? 'Cannot be undone' : `Undo: ${visible(step.undo)}`}</li>
            </ul>
            <Command text={joinCommand(step.command)} />
          </li>
        ))}
      </ol>
      {plan.refused.length > 0 && (
        <details open>
          <summary>Refused ({plan.refused.length})</summary>
          <ul class="refused">
            {plan.refused.map((each) => (
              <li key={`${each.target.kind} ${each.target.name}`}>
                <b>{visible(each.target.name ?? each.target.kind)}</b>: {visible(each.reason)}
              </li>
            ))}
          </ul>
        </details>
      )}
      {plan.cannot.length > 0 && (
        <details>
          <summary>Not in this plan ({plan.cannot.length})</summary>
          <ul>
            {plan.cannot.map((line) => (
              <li key={line}>{visible(line)}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

/** The fixes applied on this node, followed while one is under way and while it is recorded. */
export function AppliedFixes() {
  const [fixes, setFixes] = useState<AppliedFix[]>([])
  const live = recording.value?.live ?? false
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const abort = new AbortController()
    const look = () =>
      get<Fixes>('/api/fix/status', {}, abort.signal)
        .then((answer) => {
          setFixes(answer.fixes)
          if (live || answer.fixes.some(isWorking)) timer = setTimeout(look, POLL_MS)
        })
        .catch(() => undefined) // no fixes to show is no trouble
    void look()
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [live])
  if (fixes.length === 0) return null
  return (
    <section class="applied" aria-label="Fixes applied on this node">
      <h3>Fixes applied on this node</h3>
      {fixes.slice(0, 3).map((fix) => (
        <Applied key={fix.plan} fix={fix} />
      ))}
    </section>
  )
}

function Applied({ fix }: { fix: AppliedFix }) {
  const { mechanism, outcome } = fix.verdict ?? {}
  return (
    <article data-plan={fix.plan}>
      <p class="muted">Plan {fix.plan}</p>
      <ol class="steps">
        {fix.steps.map((step) => (
          <li key={step.number} value={step.number} data-state={step.state}>
            {visible(step.title)}: <b>{step.state}</b>{' '}
            <span class="muted">{formatMoment(step.time_ms, zone.value, 0)}</span>
            {step.error && <div class="trouble">{visible(step.error)}</div>}
          </li>
        ))}
      </ol>
      {mechanism && (
        <p class="verdict" data-verdict={mechanism.verdict}>
          Mechanism stopped: <b>{mechanism.verdict}</b>. {visible(mechanism.because)}
        </p>
      )}
      {outcome && (
        <p class="verdict" data-verdict={outcome.verdict}>
          Outcome improved: <b>{outcome.verdict}</b>. {visible(outcome.because)}
        </p>
      )}
    </article>
  )
}
