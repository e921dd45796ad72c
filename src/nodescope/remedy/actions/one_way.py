"""The part that steps share which cannot be taken back.

After a crash such a step is taken again: freeing what is free already does nothing.
"""

from __future__ import annotations

from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep


class OneWay:
    """An operation that undo goes past."""

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Return nothing: there is nothing to go back to."""
        return {}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Return that it is to be taken: nothing on the node shows that it was."""
        return "before"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Report that it cannot come back."""
        return UndoOutcome((), tuple(f"cannot come back: {each}" for each in step.changes))
