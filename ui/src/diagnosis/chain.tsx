/** From the symptom to what is behind it: links in order, each with where it can be seen. */
import { signal } from '@preact/signals'
import { visible } from '../flame/words'
import { odds, surely, type Chain, type Link } from './document'
import { Fix } from './fix'
import { goTo } from './follow'
import { Command, Prose } from './parts'

/** The link whose evidence is looked at now. */
const followed = signal<Link | null>(null)

type ChainProps = { chain: Chain; word: string; fixable?: boolean }

export function ChainView({ chain, word, fixable = false }: ChainProps) {
  const percent = Math.round(chain.confidence * 100)
  const steps = [...chain.steps, ...chain.fix_steps]
  return (
    <div class="chain">
      <h3>
        <span class="muted">{word}:</span> {chain.root.kind} <b>{visible(chain.root.name)}</b>
      </h3>
      <p class="confidence" data-sure={surely(chain.confidence)}>
        <span class="bar" aria-hidden="true">
          <span style={{ width: `${percent}%` }} />
        </span>
        {percent} % · {surely(chain.confidence)}
      </p>
      <ol
        class="links"
        aria-label={`From the symptom to ${chain.root.kind} ${visible(chain.root.name)}`}
      >
        {chain.links.map((link, place) => (
          <LinkView
            key={place}
            link={link}
            weakest={link.kind === chain.weakest}
            meaning={link.kind === 'mechanism' ? chain.meaning : null}
          />
        ))}
      </ol>
      {chain.arithmetic && <p class="arithmetic">{visible(chain.arithmetic)}</p>}
      {chain.refute && (
        <p class="refute">
          <b>Weakest: {chain.weakest}.</b> Would be refuted by {visible(chain.refute)}.
        </p>
      )}
      {steps.length > 0 && (
        <>
          <h4>What helps</h4>
          <ul class="fixes">
            {steps.map((step) => (
              <li key={step.statement}>
                <Prose text={step.statement} />
                {step.command && <Command text={step.command} />}
              </li>
            ))}
          </ul>
          {fixable && <Fix />}
        </>
      )}
      {chain.check.map((command, place) => (
        <div key={command} class="check">
          Check{chain.check_views[place]?.machine ? ', on the node' : ''}:
          <Command text={command} />
        </div>
      ))}
    </div>
  )
}

type LinkProps = { link: Link; weakest: boolean; meaning: string | null }

function LinkView({ link, weakest, meaning }: LinkProps) {
  const current = followed.value === link
  return (
    <li data-kind={link.kind} data-weakest={weakest}>
      <button
        class="link"
        aria-current={current}
        disabled={!link.look}
        title={link.look ? 'Go to this evidence' : link.show}
        onClick={() => follow(link)}
      >
        <span class="kind">{link.kind}</span>
        <span class="statement">{visible(link.statement)}</span>
        <span class="odds" title="How much likelier this evidence is if the link holds">
          {odds(link.strength)}
        </span>
      </button>
      {meaning && <p class="meaning">{visible(meaning)}</p>}
      {current && <Command text={link.show} />}
    </li>
  )
}

function follow(link: Link): void {
  if (!link.look) return
  followed.value = link
  goTo(link.look)
}
