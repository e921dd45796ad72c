"""Units as rows of `units`."""

from __future__ import annotations

from nodescope.records.node_tables import UnitRow
from nodescope.sources.systemd.lives import Life
from nodescope.sources.systemd.unit import Unit

# Which restart the last run of a unit was, its exit kind and exit status, and its result.
_LastRun = tuple[int | None, str | None, int | None, str | None]


def unit_row(unit: Unit, life: Life | None, time_ns: int) -> UnitRow:
    """Return a row of `units`."""
    restarts, exit_kind, exit_status, result = _last_run(unit, life)
    return UnitRow(
        time_ns=time_ns,
        unit=unit.name,
        load=unit.load,
        active=unit.active,
        sub=unit.sub,
        result=result,
        restarts=restarts,
        main_pid=unit.main_pid,
        exit_kind=exit_kind,
        exit_status=exit_status,
        file_state=unit.file_state,
        preset=unit.preset,
        vendor=unit.vendor,
        wanted_by=" ".join(unit.wanted_by) or None,
        why_not_started=unit.why_not_started,
        cgroup=unit.cgroup,
        starts=None if life is None else life.starts,
        failures=None if life is None else life.failures,
        successes=None if life is None else life.successes,
    )


def _last_run(unit: Unit, life: Life | None) -> _LastRun:
    """Return what systemd knows of the last run; what the journal reports, where it knows none."""
    # 0 until a process ended: not a status
    status = None if unit.exit_kind is None else unit.exit_status
    if life is None or unit.active is not None:
        return unit.restarts, unit.exit_kind, status, unit.result
    restarts = unit.restarts if life.counter is None else life.counter
    run = life.last
    if run is None or run.exit_kind is None:
        return restarts, unit.exit_kind, status, unit.result
    return restarts, run.exit_kind, run.exit_status, run.result or unit.result
