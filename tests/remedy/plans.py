"""Plans for tests, and runs over them without a guard."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nodescope.records.action import Target, TargetName
from nodescope.remedy.apply import ApplyRun
from nodescope.remedy.journal import PlanJournal, make_fixes_folder
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.node_lock import locked_node
from nodescope.remedy.plan import Fact, Plan, PlanStep, StepName
from nodescope.remedy.step_news import StepNews
from nodescope.remedy.undo import Undone, undo_journal


def make_step(
    kind: StepName,
    name: str | None = "sample.service",
    arguments: Mapping[str, str] | None = None,
    target: TargetName = "unit",
    **more: Any,
) -> PlanStep:
    more = {"undo": "as it was", "changes": (f"{kind} of {name}",), **more}
    return PlanStep(kind, Target(target, name), "a test", arguments or {}, command=(), **more)


def make_plan(*steps: PlanStep, facts: tuple[Fact, ...] = (), made_ns: int = 1) -> Plan:
    return Plan("node", "boot", made_ns, time.time_ns() + 10**12, facts, steps)


def apply_plan(
    plan: Plan,
    node: NodeAccess,
    root: Path | None = None,
    around: Callable[[Any, Any], None] = lambda _moment, _kind: None,
    **more: Any,
) -> list[StepNews]:
    """Apply a plan as the command does; return the news."""
    news: list[StepNews] = []
    settings: dict[str, Any] = {
        "guard": lambda _step, _node, _known: None,
        "changed": lambda _plan, _node: (),
        "report": news.append,
        **more,
    }
    folder = make_fixes_folder(root or node.unit_root)
    with locked_node(folder):
        journal = PlanJournal.open(folder, plan.id, around)
        try:
            ApplyRun(plan, node, journal, **settings).run()
        finally:
            journal.close()
    return news


def undo_plan(
    plan: Plan,
    node: NodeAccess,
    root: Path | None = None,
    around: Callable[[Any, Any], None] = lambda _moment, _kind: None,
    **more: Any,
) -> Undone:
    """Undo a plan as the command does."""
    folder = make_fixes_folder(root or node.unit_root)
    with locked_node(folder):
        journal = PlanJournal.open(folder, plan.id, around)
        try:
            return undo_journal(journal, node, lambda _news: None, **more)
        finally:
            journal.close()
