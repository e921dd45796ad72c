/** What lasts and will harm, or already wastes: each is a button that goes to what shows it. */
import { visible } from '../flame/words'
import { zone } from '../timeline/plot'
import { formatMoment } from '../times'
import { sinceOf, type Condition } from './document'
import { goTo } from './follow'
import { Command, Prose } from './parts'

const clock = (time: number): string => formatMoment(time, zone.value, 0)

export function Conditions({ conditions }: { conditions: Condition[] }) {
  if (conditions.length === 0) return null
  return (
    <section class="conditions" aria-labelledby="conditions-title">
      <h3 id="conditions-title">Conditions</h3>
      <ul>
        {conditions.map((each) => (
          <li key={`${each.kind} ${each.owner.kind} ${each.owner.name} ${each.statement}`}>
            <ConditionView condition={each} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function ConditionView({ condition }: { condition: Condition }) {
  const { severity, owner, statement, steps, look } = condition
  return (
    <article class="condition" data-kind={condition.kind} data-severity={severity}>
      <button class="symptom" onClick={() => look && goTo(look)}>
        <span class="what">
          <b>{severity}</b> {visible(statement)}
        </span>
        <span class="muted">
          {[`${owner.kind} ${visible(owner.name)}`, sinceOf(condition, clock)]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </button>
      {steps.length > 0 && (
        <details>
          <summary>What to do</summary>
          <ul class="fixes">
            {steps.map((step) => (
              <li key={step.statement}>
                <Prose text={step.statement} />
                {step.command && <Command text={step.command} />}
              </li>
            ))}
          </ul>
        </details>
      )}
    </article>
  )
}
