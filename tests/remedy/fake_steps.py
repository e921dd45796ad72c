"""An operation that changes a dictionary, so that order and resume show without a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nodescope.errors import RemedyError
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep


@dataclass
class FakeOperation:
    """Sets `values[target]` to `new`; `calls` has what was asked of it, in order."""

    values: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    fails: str | None = None
    refuses: str | None = None
    on_apply: Callable[[str], None] = lambda _name: None

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        self.calls.append("check")
        return self.refuses

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        self.calls.append("capture")
        return {"value": self.values.get(_name(step), "old")}

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        self.calls.append("apply")
        if self.fails:
            raise RemedyError(self.fails)
        self.values[_name(step)] = "new"
        self.on_apply(_name(step))
        return {"value": "new"}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        now = self.values.get(_name(step), "old")
        if now == "new":
            return "after"
        if now == "half":
            return "between"
        return "before" if now == before["value"] else "other"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        self.calls.append(f"undo {step.target.name}")
        now = self.values.get(_name(step), "old")
        if now not in ("new", "half", before["value"]):
            return UndoOutcome((), (f"{step.target.name} is {now}",))
        self.values[_name(step)] = str(before["value"])
        return UndoOutcome((_name(step),))


def _name(step: PlanStep) -> str:
    return step.target.name or ""
