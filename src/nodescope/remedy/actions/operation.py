"""The parts that every kind of step has, so that apply, undo and resume know no kind by name.

The order is always the same: `check` refuses, `capture` reads everything that is needed to go
back, the journal stores it, `apply` changes the node, the journal stores that. After a crash
between the two, `stands` decides from the captured state whether the change was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from nodescope.records.json import Json
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep

Captured = Mapping[str, Json]  # what one operation stores of the state before; its own format
Standing = Literal["before", "after", "between", "other"]


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """The result of taking one step back."""

    restored: tuple[str, ...]  # what is as it was before
    left_alone: tuple[str, ...] = ()  # what somebody else changed since: shown, not touched


class Operation(Protocol):
    """One kind of step."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Return why the step cannot be taken here and now; None if it can."""

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Read the state that the step will change, exactly enough to restore it."""

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Change the node; return what was done (`undo` gets it), or raise `RemedyError`."""

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide whether the node is in the state before the step, after it, or in another."""

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Restore what `before` says, except what is no longer as `after` left it."""
