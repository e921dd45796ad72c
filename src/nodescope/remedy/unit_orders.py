"""Orders to systemd by D-Bus: stop, start, reload, set properties. Never by a shell.

An order that makes a job is followed until the job is removed. `JobRemoved` carries its
result; should the signal be lost, the unit's own `Job` tells that it ended.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nodescope.errors import RemedyError, SourceDenied, SourceError
from nodescope.remedy.node_access import NodeAccess
from nodescope.sources.systemd.manager import JobRemoved, Manager
from nodescope.sources.systemd.unit import TYPES, Unit

_CALL_S = 25.0
_RELOAD_S = 90.0  # thousands of unit files on a busy node
_LOOK_AGAIN_S = 2.0
_DEFAULT_WAIT_S = 95.0  # systemd kills after 90 s by default
_NAME_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@"
)
OFF = frozenset({"inactive", "failed"})


@dataclass(frozen=True, slots=True)
class UnitState:
    """What decides whether a unit is on."""

    load: str
    active: str
    sub: str
    result: str

    @property
    def on(self) -> bool:
        """Return whether it runs, starts, stops, or waits for its next restart."""
        return self.active not in OFF


def why_no_unit_name(name: str | None) -> str | None:
    """Return why a name is not that of one unit; None if it is."""
    if not name or len(name) > 255 or not _NAME_CHARACTERS.issuperset(name):
        return f"{name!r} is not the name of a unit"
    stem, _, suffix = name.rpartition(".")
    if suffix not in TYPES or not stem or stem.startswith("."):
        return f"{name!r} is not the name of a unit"
    if stem.endswith("@"):
        return f"{name} is a template: name one of its instances"
    return None


@contextlib.contextmanager
def ordered(what: str) -> Iterator[None]:
    """Raise the bus's errors inside the block as errors of a step."""
    try:
        yield
    except SourceDenied as error:
        raise RemedyError(
            f"{what}: systemd denies it: {error.reason}",
            hint="run it as root; as root, a security module or polkit denies it",
        ) from error
    except SourceError as error:
        raise RemedyError(
            f"{what}: {error.reason}",
            hint=error.hint or f"asked at {error.path}; `--systemd-bus` names another address",
        ) from error


def read_unit_state(node: NodeAccess, name: str) -> UnitState:
    """Read a unit's state now."""
    with ordered(f"read the state of {name}"):
        read = node.manager.read_property
        load, active, sub = (
            str(read(name, "Unit", each)) for each in ("LoadState", "ActiveState", "SubState")
        )
        typed = name.rpartition(".")[2]
        try:
            result = str(read(name, typed.capitalize(), "Result"))
        except SourceDenied:
            raise
        except SourceError:
            result = ""  # targets and slices have none
        return UnitState(load, active, sub, result)


def read_unit(node: NodeAccess, name: str) -> Unit | None:
    """Read a unit's facts; None if systemd does not know it."""
    with ordered(f"read {name}"):
        return node.manager.read_units([name]).get(name)


def stop_unit(node: NodeAccess, name: str, timeout_s: float | None) -> None:
    """Stop a unit and wait until it is off."""
    result = _run_job(node, "StopUnit", name, timeout_s)
    state = read_unit_state(node, name)
    if state.on:
        raise RemedyError(
            f"{name} was stopped ({result}), and is {state.active} ({state.sub}) again",
            hint="something starts it: see `systemctl list-dependencies --reverse` and "
            "its sockets, timers and path units",
        )


def start_unit(node: NodeAccess, name: str, timeout_s: float | None) -> str:
    """Start a unit, also one that was started too often; return its job's result."""
    result = _run_job(node, "StartUnit", name, timeout_s)
    if result == "done" or read_unit_state(node, name).result != "start-limit-hit":
        return result
    with ordered(f"reset {name}"):
        node.manager.call_manager("ResetFailedUnit", "s", (name,), _CALL_S)
    return _run_job(node, "StartUnit", name, timeout_s)


def reload_units(node: NodeAccess) -> None:
    """Have systemd read its unit files again."""
    with ordered("reload systemd's unit files"):
        node.manager.call_manager("Reload", None, (), _RELOAD_S)


def set_property(
    node: NodeAccess, name: str, assignment: tuple[str, tuple[str, Any]], *, runtime: bool
) -> None:
    """Set one property of a unit, as `systemctl set-property` does."""
    with ordered(f"set {assignment[0]} of {name}"):
        body = (name, runtime, [assignment])
        node.manager.call_manager("SetUnitProperties", "sba(sv)", body, _CALL_S)


def _run_job(node: NodeAccess, member: str, name: str, timeout_s: float | None) -> str:
    """Enqueue a job and wait for its end; return its result."""
    wait_s = _DEFAULT_WAIT_S if timeout_s is None else timeout_s
    what = f"{member.removesuffix('Unit').lower()} {name}"
    with ordered(what):
        manager = node.manager
        _listen(manager)
        (path,) = manager.call_manager(member, "ss", (name, "replace"), _CALL_S)
        job = int(str(path).rpartition("/")[2])
        deadline = time.monotonic() + wait_s
        while (left_s := deadline - time.monotonic()) > 0:
            for change in manager.take_changes():
                if isinstance(change, JobRemoved) and change.job == job:
                    return change.result
            if not manager.bus.wait_for_bytes(min(left_s, _LOOK_AGAIN_S)):
                current: int = manager.read_property(name, "Unit", "Job")[0]
                if current != job:
                    return "unknown"
    raise RemedyError(
        f"{what}: its job has not ended after {wait_s:.0f} s",
        hint=f"it goes on: see `systemctl status {name}`; `fix apply` continues from here",
    )


def _listen(manager: Manager) -> None:
    """Ask for the ends of jobs; asking twice is no error."""
    manager.bus.match(
        "type='signal',sender='org.freedesktop.systemd1',"
        "interface='org.freedesktop.systemd1.Manager',member='JobRemoved'"
    )
    try:
        manager.call_manager("Subscribe", None, (), _CALL_S)
    except SourceDenied:
        raise
    except SourceError as error:
        if "already subscribed" not in error.reason:
            raise
