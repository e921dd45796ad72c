"""Why a unit does not run, in one word: the fact that ends a mystery.

started | masked | disabled | not_pulled_in | condition:X | assert:X |
dependency:U | waiting_for:U | cycle_deleted | start_limit | exec_failed:code
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from nodescope.sources.systemd.unit import Check, Unit

_RUNNING = ("active", "reloading", "refreshing", "deactivating")
ORDERED = (".target", ".socket", ".mount", ".path", ".timer", ".swap", ".automount")
_MAX_STEPS = 10_000
_LEAST_WAIT_US = 10_000  # a shorter one cannot be told from the time systemd takes anyway


def why_not_started(
    unit: Unit, units: Mapping[str, Unit], *, cycle_deleted: bool = False
) -> str | None:
    """The reason, from what is known of it and of the others; None if nothing is known.

    `cycle_deleted`: systemd said so itself.
    """
    if unit.load == "masked" or unit.file_state in ("masked", "masked-runtime"):
        return "masked"
    if unit.active is None:
        return _from_files(unit, units)
    if unit.active in _RUNNING or (unit.active == "activating" and unit.main_started_us):
        return "started"
    if unit.active == "failed":
        return _failed(unit)
    return (
        (f"waiting_for:{_waited_for(unit, units)}" if unit.job else None)
        or _check("condition", unit.conditions)
        or _forgotten("condition", unit.conditions, unit.condition_met, unit.tried_us)
        or _check("assert", unit.asserts)
        or _forgotten("assert", unit.asserts, unit.assert_met, unit.asserted_us)
        or ("started" if unit.active_since_us or unit.main_exited_us else None)
        or ("cycle_deleted" if cycle_deleted else None)
        or _broken_dependency(unit, units)
        or _not_wanted(unit, units)
        or _idle_dependency(unit, units)
        or "not_pulled_in"
    )


def _failed(unit: Unit) -> str:
    if unit.result == "start-limit-hit" or _is_refused(unit):
        return "start_limit"
    if unit.exit_kind == "exited" and unit.exit_status is not None:
        return f"exec_failed:{unit.exit_status}"
    if unit.exit_kind is not None:
        return f"exec_failed:{unit.exit_kind}-{unit.exit_status}"
    return f"exec_failed:{unit.result or 'unknown'}"


def _is_refused(unit: Unit) -> bool:
    """Return whether a restart was refused, rather than a run having failed at its end.

    systemd keeps the result of the run before, and says of itself nothing but times. Up to
    253 a unit that waits is made inactive before it is started anew, and then failed:
    its state changed once more. Later it fails right from waiting, so long after its run.
    """
    if unit.state_since_us is None:
        return False
    if unit.inactive_since_us is not None and unit.state_since_us > unit.inactive_since_us:
        return True
    wait = unit.restart_wait_us or 0
    if not unit.limit_burst or not unit.limit_interval_us or unit.main_exited_us is None:
        return False
    often = (unit.restarts or 0) >= unit.limit_burst
    possible = wait * unit.limit_burst < unit.limit_interval_us
    waited = unit.state_since_us - unit.main_exited_us >= wait >= _LEAST_WAIT_US
    return often and possible and waited


def _check(kind: str, checks: tuple[Check, ...]) -> str | None:
    """The check that was tried and not met; of those that trigger, one is enough."""
    for check in checks:
        if check.met is False and not check.trigger:
            return f"{kind}:{check}"
    triggers = [check for check in checks if check.trigger]
    if triggers and all(check.met is False for check in triggers):
        return f"{kind}:{triggers[0]}"
    return None


def _forgotten(
    kind: str, checks: tuple[Check, ...], met: bool | None, tried_us: int | None
) -> str | None:
    """After a reload systemd knows that the checks were not met, but not which of them."""
    if met is not False or not tried_us or not checks:
        return None
    return f"{kind}:{' or '.join(str(check) for check in checks)}"


def _broken_dependency(unit: Unit, units: Mapping[str, Unit]) -> str | None:
    for name in unit.requires:
        needed = units.get(name)
        if needed is None:
            continue
        if needed.active == "failed" or needed.load in ("not-found", "masked", "error"):
            return f"dependency:{name}"
    return None


def _idle_dependency(unit: Unit, units: Mapping[str, Unit]) -> str | None:
    for name in unit.requires:
        needed = units.get(name)
        if needed is not None and needed.active == "inactive" and not needed.active_since_us:
            if needed.type == "oneshot" and needed.main_exited_us:
                continue
            return f"dependency:{name}"
    return None


def _waited_for(unit: Unit, units: Mapping[str, Unit]) -> str:
    for name in unit.after:
        other = units.get(name)
        if other is not None and (other.active == "activating" or other.job):
            return name
    return "its job"


def _not_wanted(unit: Unit, units: Mapping[str, Unit]) -> str | None:
    if unit.file_state in ("disabled", "indirect"):
        return "disabled"
    if not _is_wanted(unit, units):
        return "not_pulled_in"
    return "cycle_deleted" if find_cycle(unit, units) else None


def _is_wanted(unit: Unit, units: Mapping[str, Unit]) -> bool:
    wanting = (units.get(name) for name in unit.wanted_by)
    return any(other is not None and (other.active in _RUNNING or other.job) for other in wanting)


def is_left_out(unit: Unit, units: Mapping[str, Unit]) -> bool:
    """Return whether the known facts do not explain why a wanted unit never started.

    A circle of units may: it can lead through units of `ORDERED` kinds, which are not
    read as a rule.
    """
    if unit.suffix != "service" or unit.active != "inactive" or not _is_wanted(unit, units):
        return False
    return why_not_started(unit, units) == "not_pulled_in"


def find_cycle(unit: Unit, units: Mapping[str, Unit]) -> tuple[str, ...]:
    """The shortest way on which a unit is ordered after itself, from it to it; empty if none.

    systemd then deletes the job of one of them and starts the others.
    """
    ways: dict[str, tuple[str, ...]] = {unit.name: (unit.name,)}
    pending = deque([unit.name])
    while pending and len(ways) < _MAX_STEPS:
        name = pending.popleft()
        for other in units.get(name, unit).after:
            if other == unit.name:
                return (*ways[name], other)
            if other not in ways and other in units and _takes_part(units[other], units):
                ways[other] = (*ways[name], other)
                pending.append(other)
    return ()


def _takes_part(unit: Unit, units: Mapping[str, Unit]) -> bool:
    """Return whether the unit is, or was, to be started with the others: else order is moot."""
    if unit.load in ("masked", "not-found"):
        return False
    if unit.active is None:
        return unit.suffix != "service" or bool(unit.wanted_by)
    if unit.active != "inactive" or unit.tried_us or unit.active_since_us:
        return True
    return _is_wanted(unit, units)


def _from_files(unit: Unit, units: Mapping[str, Unit]) -> str | None:
    """Return the reason that will keep the unit from starting, as far as its files tell."""
    if unit.file_state in ("disabled", "indirect"):
        return "disabled"
    found = _check("condition", unit.conditions) or _check("assert", unit.asserts)
    if found is not None:
        return found
    for name in unit.requires:
        needed = units.get(name)
        if needed is not None and needed.load in ("not-found", "masked"):
            return f"dependency:{name}"
    if unit.wanted_by and find_cycle(unit, units):
        return "cycle_deleted"
    if unit.file_state == "static" and not unit.wanted_by:
        return "not_pulled_in"
    return None
