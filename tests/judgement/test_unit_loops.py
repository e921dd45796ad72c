"""Loops of units, by their restarts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.sources.systemd import journal_files

from nodescope.judgement.unit_loops import UnitLoops, find_unit_loop, loops_now
from nodescope.sources.systemd import happenings
from nodescope.sources.systemd.happenings import CHOSEN, UnitHappening, parse_message
from nodescope.sources.systemd.journal import Journal
from nodescope.sources.systemd.unit import Unit

_S = 1_000_000


def _runs(
    count: int, *, every_us: int = 2 * _S, lasts_us: int = 1000, status: int = 3
) -> list[UnitHappening]:
    told = []
    for number in range(count):
        at, run = number * every_us, f"run{number}"
        told.append(happenings.started("x.service", at, run))
        told.append(happenings.exited("x.service", at + lasts_us, run, "exited", status))
        if status:
            told.append(happenings.failed("x.service", at + lasts_us, run, "exit-code"))
        told.append(happenings.restarted("x.service", at + every_us, run, number + 1))
    return told


def _loops(watch: UnitLoops, told: list[UnitHappening]) -> list[UnitHappening]:
    return [each for each in watch.take(told) if each.kind == "loop"]


def test_a_loop_is_reported_once_while_it_lasts() -> None:
    watch = UnitLoops()
    (began,) = _loops(watch, _runs(9))
    assert (began.time_us, began.details.restarts) == (6 * _S, 3)
    assert (began.details.exit_kind, began.details.exit_status) == ("exited", 3)
    loop = find_unit_loop(watch.lives.of["x.service"], 18 * _S)
    assert loop is not None
    assert (loop.kind, loop.name, loop.times, loop.hidden) == ("unit", "x.service", 9, False)
    assert (loop.since_ns, loop.period_ns) == (2 * 10**9, 2 * 10**9)
    assert loop.ends == ("exit code 3",)


def test_a_loop_that_began_before_is_reported_at_its_first_restart_from_then_on() -> None:
    watch = UnitLoops()
    watch.since_us = 13 * _S
    loops = _loops(watch, _runs(9))
    assert [(each.time_us, each.details.restarts) for each in loops] == [(14 * _S, 7)]


def test_a_loop_that_ended_before_is_not_reported() -> None:
    watch = UnitLoops()
    watch.since_us = 3000 * _S
    late = happenings.restarted("x.service", 3600 * _S, "late", 10)
    assert _loops(watch, [*_runs(9), late]) == []
    assert find_unit_loop(watch.lives.of["x.service"], 3600 * _S) is None


def test_long_good_runs_are_no_loop() -> None:
    assert _loops(UnitLoops(), _runs(9, every_us=121 * _S, lasts_us=120 * _S, status=0)) == []


def test_short_runs_that_end_well_are_a_loop_all_the_same() -> None:
    assert len(_loops(UnitLoops(), _runs(9, status=0))) == 1


def test_rare_restarts_are_no_loop() -> None:
    assert _loops(UnitLoops(), _runs(9, every_us=400 * _S)) == []


def test_a_real_journal_tells_which_units_loop(tmp_path: Path) -> None:
    journal_files.write(tmp_path, "regular")
    journal = Journal([tmp_path], None, 1000)
    told = [parse_message(message) for message in journal.take_new(CHOSEN)]
    journal.close()
    loops = _loops(UnitLoops(), [each for each in told if each is not None])
    assert {each.unit for each in loops} == {"limit.service", "crash.service"}


def test_a_loop_is_told_by_its_counter_at_every_moment_of_it() -> None:
    now_us = 3_600_000_000
    waits = Unit("x.service", active="activating", sub="auto-restart", restarts=5)
    runs = Unit("x.service", active="active", restarts=5, main_started_us=now_us - 400_000_000)
    assert loops_now(waits, now_us)
    assert loops_now(runs, now_us)
    # It has been well for longer than any round of a loop lasts, or was started by hand.
    assert not loops_now(runs, now_us + 400_000_000)
    assert not loops_now(replace(waits, restarts=0), now_us)
