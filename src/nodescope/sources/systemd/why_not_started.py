"""Why a unit does not run, in one word: the fact that ends a mystery.

started | masked | disabled | not_pulled_in | condition:X | assert:X |
dependency:U | waiting_for:U | cycle_deleted | start_limit | exec_failed:code
"""

from __future__ import annotations

from collections.abc import Mapping

from nodescope.sources.systemd.unit import Check, Unit

_RUNNING = ("active", "reloading", "refreshing", "deactivating")
_MAX_STEPS = 10_000


def why_not_started(unit: Unit, units: Mapping[str, Unit]) -> str | None:
    """The reason, from what is known of it and of the others; None if nothing is known."""
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
        or _broken_dependency(unit, units)
        or _not_wanted(unit, units)
        or _idle_dependency(unit, units)
        or "not_pulled_in"
    )


def _failed(unit: Unit) -> str:
    if unit.result == "start-limit-hit" or _gave_up(unit):
        return "start_limit"
    if unit.exit_code == "exited" and unit.exit_status is not None:
        return f"exec_failed:{unit.exit_status}"
    if unit.exit_code is not None:
        return f"exec_failed:{unit.exit_code}-{unit.exit_status}"
    return f"exec_failed:{unit.result or 'unknown'}"


def _gave_up(unit: Unit) -> bool:
    """Told to restart, restarted, and failed for good: systemd 252 keeps the first `Result`."""
    return bool(unit.restarts) and unit.restart_policy not in (None, "no")


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
    wanting = [units.get(name) for name in unit.wanted_by]
    if not any(other is not None and (other.active in _RUNNING or other.job) for other in wanting):
        return "not_pulled_in"
    return "cycle_deleted" if _in_cycle(unit, units) else None


def _in_cycle(unit: Unit, units: Mapping[str, Unit]) -> bool:
    """Whether the unit is ordered after itself: systemd then deletes its job."""
    pending, seen = list(unit.after), set[str]()
    while pending and len(seen) < _MAX_STEPS:
        name = pending.pop()
        if name == unit.name:
            return True
        if name in seen or name not in units:
            continue
        seen.add(name)
        if units[name].active == "inactive":  # a cycle that was broken has not started whole
            pending += units[name].after
    return False


def _from_files(unit: Unit, units: Mapping[str, Unit]) -> str | None:
    """What will keep it from starting, as far as the files tell."""
    if unit.file_state in ("disabled", "indirect"):
        return "disabled"
    found = _check("condition", unit.conditions) or _check("assert", unit.asserts)
    if found is not None:
        return found
    for name in unit.requires:
        needed = units.get(name)
        if needed is not None and needed.load in ("not-found", "masked"):
            return f"dependency:{name}"
    if unit.file_state == "static" and not unit.wanted_by:
        return "not_pulled_in"
    return None
