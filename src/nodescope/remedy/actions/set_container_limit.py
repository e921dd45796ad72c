"""Set a limit of a container by its engine; undone exactly.

Arguments: `limit` (`memory`, `tasks` or `cpu`), and `value` (bytes, tasks, or billionths of a
core) or `times`, by which the present limit is multiplied. The engine's update takes a limit
away from no container: where there was none, the step could not be undone, and is refused.
With the memory limit goes the one on memory and swap together, so that the swap stays as it was.
"""

from __future__ import annotations

from nodescope.errors import RemedyError
from nodescope.records.json import Json, JsonObject
from nodescope.remedy.actions.container_step import (
    engine_of,
    identifier_of,
    inspect,
    inspect_captured,
    why_not,
)
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.engine import as_remedy_errors
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.rests_on.container_facts import LIMITS
from nodescope.wire.json_fields import inner, whole


class _SetContainerLimit:
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a limit that is none, and a container without one, or not changed here."""
        limit = step.arguments.get("limit", "")
        if limit not in LIMITS:
            return f"not a limit of a container: {limit!r}"
        if _number(step, "value") is None and _number(step, "times") is None:
            return "the step names no new limit"
        refused = why_not(step, node, ends=False)
        if refused is not None:
            return refused
        now = _limits(limit, inspect(step, node))[LIMITS[limit]]
        if now <= 0:
            return (
                f"container {step.target.name} has no {limit} limit: "
                "its engine could not take a new one away again"
            )
        return f"its {limit} limit is {now} already" if now == _wanted(step, now) else None

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Read the limit, and those that change with it."""
        inspected = inspect(step, node)
        limits: dict[str, Json] = {**_limits(step.arguments["limit"], inspected)}
        return {"id": identifier_of(inspected), "limits": limits}

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Set it, and read it back."""
        engine, wanted = engine_of(step, node), _after(step, before)
        with as_remedy_errors():
            engine.update(str(before["id"]), {**wanted})
        now = _limits(step.arguments["limit"], inspect(step, node, str(before["id"])))
        if now != wanted:
            raise RemedyError(f"{engine.runtime} accepted {wanted}, and has {now}")
        return {"limits": {**now}}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by the limits that the engine reports."""
        inspected = inspect_captured(step, node, before)
        if inspected is None:
            return "other"
        now = _limits(step.arguments["limit"], inspected)
        if now == _after(step, before):
            return "after"
        return "before" if now == _before(before) else "other"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Set the limits it had, unless somebody changed them since."""
        name, limit = step.target.name or "", step.arguments["limit"]
        inspected = inspect_captured(step, node, before)
        if inspected is None:
            return UndoOutcome((), (f"container {name} was removed since; it is not made again",))
        now, had = _limits(limit, inspected), _before(before)
        if now not in (_after(step, before), had):
            return UndoOutcome((), (f"container {name}: somebody set {now} since; it stays",))
        with as_remedy_errors():
            engine_of(step, node).update(str(before["id"]), {**had})
        return UndoOutcome((f"{limit} limit of container {name} is {had[LIMITS[limit]]}",))


def _limits(limit: str, inspected: JsonObject) -> dict[str, int]:
    """Return the limit and those that the engine ties to it."""
    host = inner(inspected, "HostConfig")
    fields = [LIMITS[limit], *(["MemorySwap"] if limit == "memory" else [])]
    return {field: whole(host, field) or 0 for field in fields}


def _before(before: Captured) -> dict[str, int]:
    limits = before.get("limits")
    if not isinstance(limits, dict):
        raise RemedyError("the journal of this step has no limits to go back to")
    return {name: value for name, value in limits.items() if isinstance(value, int)}


def _after(step: PlanStep, before: Captured) -> dict[str, int]:
    had = _before(before)
    field = LIMITS[step.arguments["limit"]]
    wanted = {**had, field: _wanted(step, had[field])}
    swap = had.get("MemorySwap", 0)
    if swap > 0:  # -1: no limit; 0: the engine keeps none
        wanted["MemorySwap"] = swap + wanted[field] - had[field]
    return wanted


def _wanted(step: PlanStep, now: int) -> int:
    value, times = _number(step, "value"), _number(step, "times")
    return value if value is not None else now * (times or 1)


def _number(step: PlanStep, name: str) -> int | None:
    written = step.arguments.get(name, "")
    known = written.isdecimal() and written.isascii() and len(written) <= 18
    return int(written) or None if known else None


OPERATION = _SetContainerLimit()
