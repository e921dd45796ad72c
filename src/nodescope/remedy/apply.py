"""Apply a plan step by step: journaled, guarded at the moment of each step, resumed after a stop.

The order of events: the node's lock; the journal; is the plan still that of this node (before
the first step: everything it rests on; later: what its own steps did not change)? Then for
each step: the guard, the step's own check, the state before, the journal's `intent`, the
change, the check that it stands, the journal's `done`. The first failure ends the run; the
next run continues from the journal.

A completed step that no longer stands was turned back by somebody: it is taken once more, and
then the run stops and names who did it, as far as that is known.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from nodescope.errors import GuardRefused, NodescopeError, RemedyError, StalePlan
from nodescope.remedy.actions.catalogue import find_operation
from nodescope.remedy.actions.operation import Operation
from nodescope.remedy.interrupts import deferred_interrupt
from nodescope.remedy.journal import PlanJournal, StepAttempt
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Fact, Plan, PlanStep, Refused, StepName
from nodescope.remedy.step_news import Report, StepNews
from nodescope.wall_time import format_moment

MOST_ATTEMPTS = 2
_OF_THE_NODE = frozenset({"boot", "host", "machine"})  # no step changes these

# Return why the node cannot spare what the step changes; None if it can. Names for which a
# person said `--i-know` are passed; asked before every step.
Guard = Callable[[PlanStep, NodeAccess, frozenset[str]], Refused | None]
# Return the facts of a plan that are no longer true, each with the old and the new value.
Changed = Callable[[Plan, NodeAccess], tuple[str, ...]]
# Return who turned a unit on again since a wall time, in words; `not known` if nobody can tell.
Culprit = Callable[[PlanStep, int], str]


@dataclass(frozen=True, slots=True)
class Consents:
    """What a person allows beyond `--yes`."""

    i_know: frozenset[str] = frozenset()  # names that the guard may be overruled for
    owners: frozenset[str] = frozenset()  # whose files may be deleted


@dataclass(slots=True)
class ApplyRun:
    """One run over a plan; the caller has the node's lock and closes the journal."""

    plan: Plan
    node: NodeAccess
    journal: PlanJournal
    guard: Guard
    changed: Changed
    report: Report
    consents: Consents = Consents()
    culprit: Culprit = lambda _step, _since_ns: "not known"
    operations: Callable[[StepName], Operation] = find_operation
    now_ns: Callable[[], int] = time.time_ns

    def run(self) -> None:
        """Take every step that does not stand yet; raise at the first that cannot be taken."""
        self._refuse_stale()
        # A second round finds what was turned back meanwhile; each step has a limit of its own.
        for _ in range(1 + MOST_ATTEMPTS):
            taken = [self._take(number, step) for number, step in enumerate(self.plan.steps, 1)]
            if not any(taken):
                return

    def _refuse_stale(self) -> None:
        if expired := describe_expiry(self.plan, self.now_ns()):
            raise StalePlan(
                (expired,),
                hint="make the plan again; `fix undo` takes back what was applied of it",
            )
        begun = [each for each in self.journal.attempts if each.stands]
        facts = tuple(
            each for each in self.plan.rests_on if not any(is_own(each, one) for one in begun)
        )
        if changed := self.changed(replace(self.plan, rests_on=facts), self.node):
            raise StalePlan(changed, hint="make the plan again: `nodescope fix plan --json`")

    def _take(self, number: int, step: PlanStep) -> bool:
        """Take a step unless it stands; return whether it was taken."""
        operation = self.operations(step.kind)
        past = self.journal.latest(number)
        if past is not None and past.after is not None:
            if not step.reversible or operation.stands(step, self.node, past.before) == "after":
                return False
            self._refuse_third(number, step, past)
        with deferred_interrupt():
            self.report(StepNews(number, step, "starting"))
            try:
                refuse_step(step, self.node, self.guard, self.consents)
                attempt = self._begin(number, step, operation, past)
            except RemedyError as error:
                self.report(StepNews(number, step, "refused", str(error)))
                raise
            self._finish(attempt, step, operation)
        return True

    def _refuse_third(self, number: int, step: PlanStep, past: StepAttempt) -> None:
        if self.journal.completed(number) < MOST_ATTEMPTS:
            return
        who = self.culprit(step, past.ended_ns or past.begun_ns)
        note = f"{_called(step)} was turned back after each of {MOST_ATTEMPTS} tries; by: {who}"
        self.report(StepNews(number, step, "failed", note))
        raise RemedyError(
            note, hint="change it there; until then this node turns it back again and again"
        )

    def _begin(
        self, number: int, step: PlanStep, operation: Operation, past: StepAttempt | None
    ) -> StepAttempt:
        """Return the attempt to finish: one that a crash or failure left halfway, or a new one."""
        if past is not None and past.after is None:
            standing = operation.stands(step, self.node, past.before)
            if standing == "other":
                raise RemedyError(
                    f"{_called(step)}: an earlier run stopped within this step, and somebody "
                    "changed it since",
                    hint="`nodescope fix undo` restores what is still as the step left it",
                )
            if standing != "before":
                return past
        if reason := operation.check(step, self.node):
            raise RemedyError(f"{_called(step)}: {reason}")
        return self.journal.begin(number, step, operation.capture(step, self.node))

    def _finish(self, attempt: StepAttempt, step: PlanStep, operation: Operation) -> None:
        try:
            after = operation.apply(step, self.node, attempt.before)
            if step.reversible and operation.stands(step, self.node, attempt.before) != "after":
                raise RemedyError(f"{_called(step)}: it was done, and does not stand")
        except NodescopeError as error:
            self.journal.note("failed", attempt, {"error": str(error)})
            self.report(StepNews(attempt.number, step, "failed", str(error)))
            if isinstance(error, RemedyError):
                raise
            raise RemedyError(str(error), hint=error.hint) from error
        self.journal.note("done", attempt, {"after": after})
        self.report(StepNews(attempt.number, step, "applied"))


def _called(step: PlanStep) -> str:
    return f"{step.kind} {step.target.name or 'the node'}"


def is_own(fact: Fact, attempt: StepAttempt) -> bool:
    """Decide whether a fact is about what an attempt changed: it may differ by now."""
    if fact.kind in _OF_THE_NODE:
        return False
    step, subject = attempt.step, fact.subject
    name = step.target.name
    if name and (subject == name or {name, f"{name}.d"} & set(re.split(r"[ /]", subject))):
        return True
    return subject in step.arguments.values() or json.dumps(subject) in json.dumps(attempt.before)


def describe_expiry(plan: Plan, now_ns: int) -> str:
    """Return since when a plan may not be applied any more; empty while it may."""
    return f"it expired at {format_moment(plan.expires_ns)}" if now_ns > plan.expires_ns else ""


def find_obstacles(
    plan: Plan,
    node: NodeAccess,
    guard: Guard,
    consents: Consents,
    operations: Callable[[StepName], Operation] = find_operation,
) -> tuple[str, ...]:
    """Return what would stop a plan: its age, the guard, a missing consent, a step's own check."""
    expired = describe_expiry(plan, time.time_ns())
    found = [expired] if expired else []
    for step in plan.steps:
        try:
            refuse_step(step, node, guard, consents)
            reason = operations(step.kind).check(step, node)
        except RemedyError as error:
            found.append(f"{error}" + (f" ({error.hint})" if error.hint else ""))
            continue
        if reason:
            found.append(f"{_called(step)}: {reason}")
    return tuple(found)


def refuse_step(step: PlanStep, node: NodeAccess, guard: Guard, consents: Consents) -> None:
    """Raise if the guard or a missing consent forbids a step."""
    if step.consent and step.consent not in consents.owners:
        raise RemedyError(
            f"{_called(step)}: this deletes what belongs to {step.consent}",
            hint=f"`--consent {step.consent}` says that its owner agrees",
        )
    refused = guard(step, node, consents.i_know)
    if refused is not None:
        override = refused.override
        raise GuardRefused(
            f"{_called(step)}: {refused.reason}",
            hint=f"`--i-know {override}` overrules this" if override else None,
        )
