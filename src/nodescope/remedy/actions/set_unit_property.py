"""Set a resource property of a unit, as `systemctl set-property` does; undone exactly.

Arguments: `property` (one of `PROPERTIES`), `value` (a whole number, or `infinity`), and
`runtime`: `yes` sets it until the next boot only. systemd applies the value at once and writes
a drop-in below /etc/systemd/system.control (or /run); undo restores that folder and reloads,
and systemd applies what the unit's files then say.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodescope.errors import RemedyError
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.actions.unit_file_step import UnitFileStep, files_of, unit_name
from nodescope.remedy.files.file_changes import capture_changes, parse_changes, restore_changes
from nodescope.remedy.files.file_state import ABSENT, FileState
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.unit_orders import ordered, read_unit_state, reload_units, set_property

_INFINITY = (1 << 64) - 1
# By the name in unit files: the D-Bus property, and the files that systemd writes for it.
PROPERTIES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    name: (name, (f"50-{name}.conf",))
    for name in (
        "MemoryMax", "MemoryHigh", "MemoryLow", "MemoryMin", "MemorySwapMax", "MemoryLimit",
        "TasksMax", "CPUWeight", "CPUShares", "IOWeight", "StartupCPUWeight",
    )
} | {
    # In microseconds of core time per second.
    "CPUQuota": ("CPUQuotaPerSecUSec", ("50-CPUQuota.conf", "50-CPUQuotaPeriodSec.conf")),
}  # fmt: skip
_INTERFACES = ("service", "slice", "scope", "socket", "mount", "swap")


class _SetUnitProperty(UnitFileStep):
    """The operation."""

    def wanted(self, step: PlanStep, node: NodeAccess) -> Mapping[str, FileState]:
        """Return the drop-ins that systemd may write; only their state before counts."""
        where = "run" if _is_runtime(step) else "etc"
        folder = f"/{where}/systemd/system.control/{unit_name(step)}.d"
        return {f"{folder}/{each}": ABSENT for each in PROPERTIES[_property(step)][1]}

    def refuse(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a property or value that systemd has not, or that the unit has already."""
        if step.arguments.get("property") not in PROPERTIES:
            return f"not a property that a step sets: {step.arguments.get('property')!r}"
        if _parse_value(step.arguments.get("value", "")) is None:
            return f"not a value of {_property(step)}: {step.arguments.get('value')!r}"
        if unit_name(step).rpartition(".")[2] not in _INTERFACES:
            return f"{unit_name(step)} has no resource limits"
        if _read(step, node) == _value(step):
            return f"{_property(step)} of {unit_name(step)} has that value already"
        return None

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Read the value, and the folder that systemd writes to."""
        files = capture_changes(files_of(node), self.wanted(step, node))
        return {**files.to_json(), "value": _read(step, node)}

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Set it, and read it back."""
        assignment = (PROPERTIES[_property(step)][0], ("t", _value(step)))
        set_property(node, unit_name(step), assignment, runtime=_is_runtime(step))
        if (now := _read(step, node)) != _value(step):
            raise RemedyError(f"{_property(step)} of {unit_name(step)} is {now} after it was set")
        written = capture_changes(files_of(node), self.wanted(step, node))
        return {"value": _read(step, node), **written.to_json()}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by the value that systemd applies."""
        now = _read(step, node)
        if now == _value(step):
            return "after"
        return "before" if now == before.get("value") else "other"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Restore the files that systemd wrote, reload, and check the value."""
        name, prop = unit_name(step), _property(step)
        unit_is_there = read_unit_state(node, name).load == "loaded"
        now = _read(step, node) if unit_is_there else None
        if unit_is_there and now not in (_value(step), before.get("value")):
            return UndoOutcome((), (f"{prop} of {name}: somebody set {now} since; it stays",))
        files = files_of(node)
        captured = parse_changes(before)
        # Every file of the property is systemd's, written for us: only what it was counts.
        written = capture_changes(files, self.wanted(step, node))
        outcome = restore_changes(files, captured.with_afters(written))
        reload_units(node)
        if not unit_is_there:
            return outcome
        now = _read(step, node)
        if now != before.get("value"):
            raise RemedyError(
                f"{prop} of {name} is {now} after its files were restored, not "
                f"{before.get('value')}",
                hint=f"see `systemctl cat {name}`",
            )
        return UndoOutcome((*outcome.restored, f"{prop} of {name} is {now}"), outcome.left_alone)


def _read(step: PlanStep, node: NodeAccess) -> int:
    name, prop = unit_name(step), PROPERTIES[_property(step)][0]
    with ordered(f"read {prop} of {name}"):
        value: int = node.manager.read_property(name, name.rpartition(".")[2].capitalize(), prop)
    return value


def _property(step: PlanStep) -> str:
    return step.arguments["property"]


def _is_runtime(step: PlanStep) -> bool:
    return step.arguments.get("runtime") == "yes"


def _value(step: PlanStep) -> int:
    value = _parse_value(step.arguments["value"])
    if value is None:
        raise RemedyError(f"not a value: {step.arguments['value']!r}")
    return value


def _parse_value(text: str) -> int | None:
    if text == "infinity":
        return _INFINITY
    if not text.isdecimal() or not text.isascii() or len(text) > 20 or int(text) > _INFINITY:
        return None
    return int(text)


OPERATION = _SetUnitProperty()
