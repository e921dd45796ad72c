"""Stop a container by its engine; undone by starting it, and pausing it if it was paused.

Argument: `timeout_s`, after which the engine kills it. The engine's own counter of restarts
begins at 0 again when the container is started.
"""

from __future__ import annotations

from nodescope.errors import RemedyError
from nodescope.remedy.actions.container_step import (
    engine_of,
    identifier_of,
    inspect,
    inspect_captured,
    is_on,
    why_not,
)
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.engine import as_remedy_errors
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.wire.json_fields import inner, text

_TIMEOUT_S = 30
_MAX_TIMEOUT_S = 600


class _StopContainer:
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a container that is declared elsewhere, made anew, or gone once it stops."""
        if _timeout_s(step) is None:
            return f"not a time-out: {step.arguments.get('timeout_s')!r}"
        return why_not(step, node, ends=True)

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Read which container it is, and its state."""
        inspected = inspect(step, node)
        status = text(inner(inspected, "State"), "Status")
        return {"id": identifier_of(inspected), "status": status, "on": is_on(inspected)}

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Stop it, and check that it stopped."""
        identifier = str(before["id"])
        engine = engine_of(step, node)
        with as_remedy_errors():
            engine.stop(identifier, _timeout_s(step) or _TIMEOUT_S)
        now = inspect(step, node, identifier)
        if is_on(now):
            raise RemedyError(f"container {step.target.name} still runs after it was stopped")
        return {"status": text(inner(now, "State"), "Status")}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by whether the captured container runs."""
        now = inspect_captured(step, node, before)
        if now is None:
            return "other"
        return "before" if is_on(now) else "after"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Start it again, if it ran and nobody started or removed it since."""
        name = step.target.name or ""
        now = inspect_captured(step, node, before)
        if now is None:
            return UndoOutcome((), (f"container {name} was removed since; it is not made again",))
        if is_on(now) and before.get("status") == text(inner(now, "State"), "Status"):
            return UndoOutcome((f"container {name} is {before.get('status')}, as before",))
        if is_on(now):  # by whom is not known: an undo that was cut short may have started it
            return UndoOutcome((), (f"container {name} runs already; it is left as it is",))
        if before.get("on") is not True:
            return UndoOutcome((f"container {name} did not run before, and does not now",))
        identifier = str(before["id"])
        engine = engine_of(step, node)
        with as_remedy_errors():
            engine.start(identifier)
            if before.get("status") == "paused":
                engine.pause(identifier)
        return UndoOutcome((f"container {name} is started again",))


def _timeout_s(step: PlanStep) -> int | None:
    written = step.arguments.get("timeout_s", str(_TIMEOUT_S))
    known = written.isdecimal() and written.isascii() and len(written) <= 4
    return min(int(written), _MAX_TIMEOUT_S) if known else None


OPERATION = _StopContainer()
