"""The loop of the story is told as the recorder would have."""

from __future__ import annotations

from nodescope.judgement.unit_insides import tells_of_failure
from nodescope.lab.synthetic_loop import SyntheticLoop
from nodescope.quantities import SECOND_NS
from nodescope.records.event_details import UnitLinesDetails
from nodescope.records.event_kinds import EVENT_KINDS


def _loop() -> SyntheticLoop:
    return SyntheticLoop(
        21, 68_000, lambda second: round(second * SECOND_NS), 1_780_000_000 * SECOND_NS
    )


def test_what_stays_is_a_running_count_of_all_removed_a_while_ago() -> None:
    loop = _loop()
    rows = [row for start in range(0, 1200, 120) for row in loop.churn(start, start + 120)]
    counts = [row.unreleased or 0 for row in rows]
    assert counts == sorted(counts)
    assert counts[0] == 0
    last = rows[-1]
    while_ago = sum(end <= last.time_ns / SECOND_NS - 15 for end in range(3, 1200, 21))
    assert last.unreleased == while_ago > 50
    assert sum(row.removed for row in rows) == 57
    assert {(row.parent, row.pattern, row.maker) for row in rows} == {("/ecs", "*", "runc")}


def test_events_have_the_kinds_that_there_are() -> None:
    loop = _loop()
    assert len(loop.churn(0, 120)) > 1
    assert len(loop.containers(0, 120)) == 3 * 6
    assert {event.kind for event in loop.events(0, 120)} == {
        "container_started", "container_exit", "container_loop", "unit_logs_ends",
    } <= EVENT_KINDS.keys()  # fmt: skip
    assert not any(event.details.others for event in loop.events(0, 120))


def test_the_units_lines_name_the_container_that_was_there_before() -> None:
    loop = _loop()
    (said,) = [each for each in loop.events(0, 120) if each.kind == "unit_logs_ends"]
    details = said.get(UnitLinesDetails)
    assert tells_of_failure(details.last_line or "")
    assert details.times == 5
    ids = {row.id for row in loop.containers(0, 120) if row.time_ns < said.time_ns}
    assert any(each in line for line in details.lines or () for each in ids)
    assert len({each[:12] for each in ids}) == len(ids)


def test_every_end_is_told_once_over_segments() -> None:
    loop = _loop()
    ends = [
        event.time_ns // SECOND_NS
        for start in range(0, 600, 120)
        for event in loop.events(start, start + 120)
        if event.kind == "container_exit"
    ]
    assert ends == list(range(3, 603, 21))
