/** One thing that went wrong: the symptom, its causes by confidence, what it was not. */
import { useState } from 'preact/hooks'
import { visible } from '../flame/words'
import type { Range } from '../range'
import { jump } from '../state'
import { zone } from '../timeline/plot'
import { formatMoment } from '../times'
import { ChainView } from './chain'
import { explains, type Chain, type Finding } from './document'
import { goTo } from './follow'
import { Prose } from './parts'

const AROUND_MS = 15_000
const clock = (time: number): string => formatMoment(time, zone.value, 3)

export function FindingView({ finding, open }: { finding: Finding; open: boolean }) {
  const [opened, setOpened] = useState(open)
  const { symptom, chains } = finding
  const best = chains[0]
  return (
    <article class="finding" data-kind={symptom.kind}>
      <button
        class="symptom"
        aria-expanded={opened}
        onClick={() => {
          if (!opened) goTo(symptom.look)
          setOpened(!opened)
        }}
      >
        <span class="what">
          {symptom.statement.includes(symptom.subject) ? (
            <b>{visible(symptom.statement)}</b>
          ) : (
            <>
              <b>{visible(symptom.subject)}</b> {visible(symptom.statement)}
            </>
          )}
        </span>
        <span class="muted">
          {clock(symptom.time_ms)}
          {best && explains(best)
            ? ` · ${best.root.kind} ${visible(best.root.name)}`
            : ' · no cause shown'}
        </span>
      </button>
      {opened && <Body finding={finding} />}
    </article>
  )
}

const around = (time: number): Range => ({ from: time - AROUND_MS, to: time + AROUND_MS })

const wordOf = (chain: Chain): string =>
  !explains(chain) ? 'Reported' : chain.place ? 'Where' : 'Cause'

function Body({ finding }: { finding: Finding }) {
  const [best, ...others] = finding.chains
  return (
    <div class="body">
      {!explains(best) && <Ends finding={finding} />}
      {best && <ChainView chain={best} word={wordOf(best)} fixable={explains(best)} />}
      {finding.hidden && <p class="hidden-note">{visible(finding.hidden)}</p>}
      <Times finding={finding} />
      {others.map((chain) => (
        <details key={`${chain.root.kind} ${chain.root.name}`}>
          <summary>
            Or {chain.root.kind} {visible(chain.root.name)}{' '}
            <span class="muted">{Math.round(chain.confidence * 100)} %</span>
          </summary>
          <ChainView chain={chain} word="Or" />
        </details>
      ))}
      {finding.ruled_out.length > 0 && (
        <details>
          <summary>Ruled out ({finding.ruled_out.length})</summary>
          <ul>
            {finding.ruled_out.map((each) => (
              <li key={each.name}>{visible(each.statement)}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

/** Why no cause is shown, and what to do about it. */
function Ends({ finding: { ends } }: { finding: Finding }) {
  return (
    <div class="ends">
      <p>This recording does not show a cause.</p>
      {ends && (
        <p>
          <b>{visible(ends.what)}</b>: {visible(ends.consequence)}
          {ends.hint && '; '}
          <Prose text={ends.hint} />
        </p>
      )}
    </div>
  )
}

/** The same again, what those times share, and what else belongs to this incident. */
function Times({ finding }: { finding: Finding }) {
  const repeats = finding.repeats_ms ?? []
  return (
    <>
      {repeats.length > 0 && (
        <p class="repeats">
          The same at{' '}
          {repeats.map((time) => (
            <button
              key={time}
              class="time"
              onClick={() => jump({ range: around(time), filters: {} })}
            >
              {clock(time)}
            </button>
          ))}
        </p>
      )}
      {finding.unfollowed > 0 && (
        <p class="unfollowed">{finding.unfollowed} more of its kind were not followed.</p>
      )}
      {finding.recurring.length > 0 && (
        <ul class="recurring">
          {finding.recurring.map((line) => (
            <li key={line}>{visible(line)}</li>
          ))}
        </ul>
      )}
      {finding.also.length > 0 && (
        <details>
          <summary>Also ({finding.also.length})</summary>
          <ul>
            {finding.also.map((each) => (
              <li key={`${each.kind} ${each.subject} ${each.time_ms}`}>
                <button class="time" onClick={() => goTo(each.look)}>
                  {clock(each.time_ms)}
                </button>{' '}
                {visible(each.subject)}: {visible(each.statement)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}
