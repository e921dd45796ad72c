"""Stop a unit by systemd, with a time-out; undone by starting it again.

Arguments: `timeout_s`, how long to wait for the stop (default: a little longer than systemd
does before it kills). Units that systemd stops with it (they require it, are bound to it or
are part of it) are stored as well, and started again by undo.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodescope.errors import RemedyError
from nodescope.records.json import Json
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.unit_orders import (
    OFF,
    ordered,
    read_unit_state,
    start_unit,
    stop_unit,
    why_no_unit_name,
)

_STOPPED_WITH_IT = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf")
_MOST_UNITS = 1000


class _StopUnit:
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Return why the unit cannot be stopped."""
        if reason := why_no_unit_name(step.target.name):
            return reason
        if reason := _why_no_timeout(step):
            return reason
        name = _name(step)
        state = read_unit_state(node, name)
        if state.load == "not-found" and not state.on:
            return f"systemd does not know {name}"
        with ordered(f"read {name}"):
            if node.manager.read_property(name, "Unit", "RefuseManualStop"):
                return f"{name} refuses to be stopped by hand (RefuseManualStop=)"
        return None

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Read which units run that a stop ends."""
        name = _name(step)
        return {
            "active": read_unit_state(node, name).active,
            "with_it": list(find_stopped_with(node, name)),
        }

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Stop it and wait."""
        stop_unit(node, _name(step), _timeout_s(step))
        return {"active": read_unit_state(node, _name(step)).active}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by whether it is on."""
        return "before" if read_unit_state(node, _name(step)).on else "after"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Start again what ran before and does not run now."""
        name = _name(step)
        wanted = [] if before.get("active") in OFF else [name]
        wanted += _texts(before.get("with_it"))
        restored, left = [], []
        for each in wanted:
            if read_unit_state(node, each).on:
                restored.append(f"{each} runs")
                continue
            result = start_unit(node, each, _timeout_s(step))
            if result in ("done", "unknown") or read_unit_state(node, each).on:
                restored.append(f"{each} was started again")
            elif result == "failed" and before.get("active") == "activating" and each == name:
                restored.append(f"{each} was started again, and fails as it did before")
            else:
                left.append(f"{each} does not start: its job ended as {result!r}")
        return UndoOutcome(tuple(restored), tuple(left))


def find_stopped_with(node: NodeAccess, name: str) -> tuple[str, ...]:
    """Return the units, running now, that systemd stops with a unit; nearest first."""
    found: dict[str, None] = {}
    pending = [name]
    while pending and len(found) < _MOST_UNITS:
        current = pending.pop(0)
        with ordered(f"read what depends on {current}"):
            for key in _STOPPED_WITH_IT:
                for each in node.manager.read_property(current, "Unit", key):
                    if each not in found and each != name and read_unit_state(node, each).on:
                        found[each] = None
                        pending.append(each)
    return tuple(found)


def _name(step: PlanStep) -> str:
    if reason := why_no_unit_name(step.target.name):
        raise RemedyError(reason)
    return step.target.name or ""


def _timeout_s(step: PlanStep) -> float | None:
    written = step.arguments.get("timeout_s")
    return None if written is None else float(written)


def _why_no_timeout(step: PlanStep) -> str | None:
    written = step.arguments.get("timeout_s", "1")
    whole = written.isdecimal() and len(written) < 6 and int(written) > 0
    return None if whole else f"timeout_s is not a number of seconds: {written!r}"


def _texts(value: Json) -> list[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [str(each) for each in value]
    return []


OPERATION = _StopUnit()
