"""Undo a plan from its journal: backwards, exactly, leaving alone what others changed since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nodescope.errors import NodescopeError, RemedyError
from nodescope.remedy.actions.catalogue import find_operation
from nodescope.remedy.actions.operation import Operation
from nodescope.remedy.interrupts import deferred_interrupt
from nodescope.remedy.journal import PlanJournal, StepAttempt
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import StepName
from nodescope.remedy.step_news import Report, StepNews


@dataclass(frozen=True, slots=True)
class Undone:
    """The result of an undo: what is as before, and what is not."""

    restored: tuple[str, ...]
    left_alone: tuple[str, ...]  # others changed it since
    kept: tuple[str, ...]  # it cannot come back


def undo_journal(
    journal: PlanJournal,
    node: NodeAccess,
    report: Report,
    operations: Callable[[StepName], Operation] = find_operation,
) -> Undone:
    """Take back every attempt that still stands, the last first; stop at the first failure.

    The caller has the node's lock. An undo that was cut short continues where it stopped.
    """
    restored: list[str] = []
    left: list[str] = []
    kept: list[str] = []
    for attempt in reversed(journal.attempts):
        if not attempt.stands:
            continue
        step = attempt.step
        with deferred_interrupt():
            if not step.reversible:
                journal.note("kept", attempt, {})
                report(StepNews(attempt.number, step, "kept", "cannot come back"))
                kept += step.changes
                continue
            outcome = _undo_one(attempt, journal, node, report, operations(step.kind))
        restored += outcome.restored
        left += outcome.left_alone
    return Undone(tuple(restored), tuple(left), tuple(kept))


def _undo_one(
    attempt: StepAttempt,
    journal: PlanJournal,
    node: NodeAccess,
    report: Report,
    operation: Operation,
) -> Undone:
    step = attempt.step
    report(StepNews(attempt.number, step, "starting", "undo"))
    journal.note("undoing", attempt, {})
    try:
        outcome = operation.undo(step, node, attempt.before, attempt.after or {})
    except NodescopeError as error:
        report(StepNews(attempt.number, step, "failed", str(error)))
        if isinstance(error, RemedyError):
            raise
        raise RemedyError(str(error), hint=error.hint) from error
    content = {"restored": list(outcome.restored), "left_alone": list(outcome.left_alone)}
    journal.note("undone", attempt, content)
    note = "; ".join(outcome.left_alone)
    report(StepNews(attempt.number, step, "undone", note))
    return Undone(outcome.restored, outcome.left_alone, ())
