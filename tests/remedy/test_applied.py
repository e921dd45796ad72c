from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodescope.errors import UsageError
from nodescope.recording.memory import recording_of
from nodescope.records.recorder_tables import EventRow
from nodescope.remedy.proof.applied import Applied, find_applied, parse_applied, read_applied


def journal(*records: tuple[str, int, int]) -> bytes:
    lines = [
        json.dumps(
            {"sum": "0", "record": {"kind": kind, "number": number, "attempt": 1, "wall_ns": at}}
        )
        for kind, number, at in records
    ]
    return "\n".join([*lines, ""]).encode()


DONE = (("intent", 1, 10), ("done", 1, 20), ("intent", 2, 21), ("done", 2, 30))


def test_a_plan_is_in_force_from_the_end_of_its_last_step() -> None:
    assert parse_applied(journal(*DONE)) == Applied(10, 30)


def test_a_torn_line_was_not_done() -> None:
    assert parse_applied(journal(*DONE) + b'{"sum":"1","rec') == Applied(10, 30)


def test_what_was_undone_or_failed_is_not_in_force() -> None:
    assert "undone" in parse_applied(journal(*DONE, ("undone", 2, 40))).undone
    assert "step 2 failed" in parse_applied(journal(*DONE[:3], ("failed", 2, 29))).undone
    assert parse_applied(journal(*DONE, ("undone", 2, 40), *DONE)).undone == ""


def test_a_recording_tells_when_it_was_applied() -> None:
    def step(second: int, outcome: str, plan: str = "abc") -> EventRow:
        details = json.dumps({"plan": plan, "number": 1, "outcome": outcome})
        return EventRow(time_ns=second, kind="fix_step", subject="x", message="m", details=details)

    rows = [step(10, "applied"), step(20, "applied"), step(30, "applied", "other")]
    assert find_applied(recording_of(rows), "abc") == Applied(10, 20)
    undone = find_applied(recording_of([*rows, step(40, "undone")]), "abc")
    assert undone is not None
    assert "undone" in undone.undone
    assert find_applied(recording_of(rows), "none") is None


def test_a_plan_that_was_never_applied_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="was not applied here"):
        read_applied(tmp_path, "0123456789ab")
    with pytest.raises(UsageError, match="no step was completed"):
        parse_applied(journal(("intent", 1, 10)))
