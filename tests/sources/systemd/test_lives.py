from __future__ import annotations

from pathlib import Path

from tests.sources.systemd import journal_files

from nodescope.sources.systemd import happenings
from nodescope.sources.systemd.happenings import CHOSEN, UnitHappening, parse_message
from nodescope.sources.systemd.journal import Journal, JournalMessage
from nodescope.sources.systemd.lives import Lives

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


def test_a_run_is_completed_by_what_is_told_of_it() -> None:
    told = Lives().take(_runs(1))
    assert [each.kind for each in told] == ["started", "exit", "failed", "restart"]
    assert told[1].details.ran_s == 0.001
    assert (told[3].details.exit_kind, told[3].details.exit_status) == ("exited", 3)


def test_two_witnesses_tell_one_thing_once() -> None:
    lives = Lives()
    assert len(lives.take([*_runs(2), *_runs(2)])) == 8
    assert lives.take(_runs(2)) == []
    life = lives.of["x.service"]
    assert (life.starts, life.failures, life.successes, life.restarts) == (2, 2, 0, 2)


def test_of_two_times_the_exact_one_is_taken() -> None:
    late = happenings.restarted("x.service", 9 * _S, "run", 1, exact=False)
    exact = happenings.restarted("x.service", 2 * _S, "run", 1)
    assert [each.time_us for each in Lives().take([late, exact])] == [2 * _S]


def test_what_only_looks_like_systemd_is_not_believed() -> None:
    fields = {
        "UNIT": "x.service",
        "MESSAGE_ID": "5eb03494b6584870a536b337290809b3",
        "_PID": "4711",
        "N_RESTARTS": "7",
    }
    assert parse_message(JournalMessage(1, 1, "", fields)) is None
    told = parse_message(JournalMessage(1, 1, "", {**fields, "_PID": "1"}))
    assert told is not None
    assert told.details.restarts == 7


def test_systemds_own_line_tells_whom_it_left_out_of_a_circle() -> None:
    said = (
        "b.service: Job a.service/start deleted to break ordering cycle starting with "
        "b.service/start"
    )
    fields = {"UNIT": "b.service", "MESSAGE": said, "_PID": "1"}
    told = parse_message(JournalMessage(5 * _S, 1, "", fields))
    assert told is not None
    assert (told.kind, told.unit, told.details.to_json()) == (
        "start_failed", "a.service", {"result": "ordering-cycle"}
    )  # fmt: skip
    lives = Lives()
    assert lives.take([told]) == [told]
    known = [lives.of["a.service"].cycle_deleted]
    lives.take([happenings.started("a.service", 9 * _S, "run")])
    known.append(lives.of["a.service"].cycle_deleted)
    assert known == [True, False]
    assert parse_message(JournalMessage(5 * _S, 1, "", {**fields, "_PID": "77"})) is None


def test_a_stop_is_known_until_the_next_start_and_is_no_event() -> None:
    fields = {"UNIT": "x.service", "MESSAGE_ID": "9d1aaa27d60140bd96365438aad20286"}
    by_restart = JournalMessage(1, 1, "", {**fields, "JOB_TYPE": "restart"})
    assert parse_message(by_restart) is None
    stopped = parse_message(JournalMessage(1, 1, "", {**fields, "JOB_TYPE": "stop"}))
    assert stopped is not None
    lives = Lives()
    assert lives.take([stopped]) == []
    known = [lives.of["x.service"].stopped]
    lives.take([happenings.started("x.service", 2, "run")])
    known.append(lives.of["x.service"].stopped)
    assert known == [True, False]


def test_a_unit_that_was_skipped_did_not_start() -> None:
    """systemd says `started` of a unit whose condition is not met, but gives it no run."""
    fields = {
        "UNIT": "x.service",
        "MESSAGE_ID": "39f53479d3a045ac8e11786248231fbf",
        "MESSAGE": "x.service was skipped because of an unmet condition check",
        "INVOCATION_ID": "",
    }
    assert parse_message(JournalMessage(1, 1, "", fields)) is None


def test_a_real_journal_tells_the_lives_of_its_units(tmp_path: Path) -> None:
    journal_files.write(tmp_path, "regular")
    journal = Journal([tmp_path], None, 1000)
    lives = Lives()
    told = (parse_message(message) for message in journal.take_new(CHOSEN))
    new = lives.take(each for each in told if each is not None)
    journal.close()
    limited = lives.of["limit.service"]
    assert (limited.starts, limited.failures, limited.restarts) == (5, 5, 5)
    assert [name for name, life in lives.of.items() if life.refused] == ["limit.service"]
    assert lives.of["held.service"].start_failures == {"dependency": 1}
    assert lives.of["asserted.service"].start_failures == {"assert": 1}
    last = lives.of["noexec.service"].last
    assert last is not None
    assert (last.exit_kind, last.exit_status) == ("exited", 203)
    assert "conditioned.service" not in lives.of
    assert {each.unit for each in new if each.kind == "restart"} >= {"limit.service"}
