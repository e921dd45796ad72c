"""Units as rows: what systemd tells, and what only the journal does."""

from __future__ import annotations

from nodescope.ingest.unit_rows import unit_row
from nodescope.records.node_tables import UnitRow
from nodescope.sources.systemd.lives import Life, UnitRun
from nodescope.sources.systemd.unit import Unit

ENDED = UnitRun("1", started_us=1, ended_us=2, exit_kind="exited", exit_status=3)


def test_what_systemd_knows_stands_whatever_the_journal_tells() -> None:
    unit = Unit(
        "a.service", load="loaded", active="active", sub="running", result="success", restarts=2,
        main_pid=7, wanted_by=("b.target", "c.service"), exit_kind="killed", exit_status=9,
    )  # fmt: skip
    life = Life("a.service", starts=4, failures=1, successes=2, counter=8)
    life.runs.append(ENDED)
    assert unit_row(unit, life, 5) == UnitRow(
        time_ns=5, unit="a.service", load="loaded", active="active", sub="running",
        result="success", restarts=2, main_pid=7, wanted_by="b.target c.service",
        exit_kind="killed", exit_status=9, starts=4, failures=1, successes=2,
    )  # fmt: skip


def test_the_status_of_a_process_that_never_ended_is_not_one() -> None:
    row = unit_row(Unit("a.service", active="active", exit_status=0), None, 5)
    assert row == UnitRow(time_ns=5, unit="a.service", active="active")


def test_without_systemd_the_journal_tells_of_the_last_run() -> None:
    life = Life("a.service", starts=1, failures=1, counter=8)
    life.runs.append(ENDED)
    row = unit_row(Unit("a.service", file_state="enabled"), life, 5)
    assert (row.restarts, row.exit_kind, row.exit_status, row.result) == (8, "exited", 3, None)
    assert (row.starts, row.failures, row.successes) == (1, 1, 0)
