"""What must have happened between two lists."""

from __future__ import annotations

from dataclasses import replace

from nodescope.sources.containers.container import Container, HappeningKind, find_happenings

NOW = 1_000_000
RUNS = Container("x", "1", name="web", state="running", pid=5, started_wall_ns=100)
ENDED = replace(RUNS, state="exited", pid=None, exit_status=3, finished_wall_ns=300)


def kinds(before: Container | None, after: Container | None) -> list[tuple[str, int]]:
    lists = [{each.id: each} if each else {} for each in (before, after)]
    return [(each.kind.value, each.wall_ns) for each in find_happenings(lists[0], lists[1], NOW)]


def test_nothing_happens_to_what_stays_the_same() -> None:
    assert kinds(RUNS, RUNS) == []
    assert kinds(ENDED, ENDED) == []


def test_a_new_one_started_when_it_says() -> None:
    assert kinds(None, RUNS) == [("started", 100)]
    assert kinds(None, replace(RUNS, state="created", started_wall_ns=None)) == []


def test_a_new_one_that_ended_already_did_both() -> None:
    assert kinds(None, ENDED) == [("started", 100), ("exited", 300)]


def test_a_start_that_is_not_told_is_not_after_its_end() -> None:
    assert kinds(None, replace(ENDED, started_wall_ns=None)) == [("started", 300), ("exited", 300)]


def test_an_end_has_its_code_and_how_long_it_ran() -> None:
    (end,) = find_happenings({"1": RUNS}, {"1": ENDED}, NOW)
    assert (end.kind, end.container.exit_status, end.ran_ns) == (HappeningKind.EXITED, 3, 200)


def test_a_restart_is_an_end_and_a_start() -> None:
    again = replace(RUNS, pid=6, started_wall_ns=400, finished_wall_ns=300)
    assert kinds(RUNS, again) == [("exited", 300), ("started", 400)]


def test_a_restart_between_two_looks_at_ended_runs() -> None:
    again = replace(ENDED, started_wall_ns=400, finished_wall_ns=500)
    assert kinds(ENDED, again) == [("started", 400), ("exited", 500)]


def test_a_counter_that_rises_is_a_start() -> None:
    only = Container("kubelet", "1", restarts=2)
    assert kinds(only, replace(only, restarts=3)) == [("started", NOW)]


def test_what_is_gone_ended_first() -> None:
    assert kinds(RUNS, None) == [("exited", NOW), ("removed", NOW)]
    assert kinds(ENDED, None) == [("removed", NOW)]


def test_subject_stays_over_ids() -> None:
    assert RUNS.subject == replace(RUNS, id="2").subject == "web"
    assert replace(RUNS, pod="p", namespace="n").subject == "n/p/web"
