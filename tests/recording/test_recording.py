"""What a recording answers, whatever it is kept in."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest
from tests.recording import recorded_node as node
from tests.recording.recorded_node import END_S, SEGMENTS, wall

from nodescope.errors import UsageError
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES
from nodescope.recording.coverage import Coverage
from nodescope.recording.memory import recording_of
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.node_tables import ContainerRow, MemoryCgroupsRow, PressureRow, UnitRow
from nodescope.records.recorder_tables import EventRow, HeartbeatRow
from nodescope.records.table import Row, RowType

WHOLE = Window(wall(0), wall(END_S))
WINDOWS = [
    WHOLE,
    Window(wall(30), wall(31)),
    Window(wall(100), wall(150)),  # over the end of a segment
    Window(wall(290), wall(330)),  # over the step of the clock
    Window(wall(830), wall(910)),  # over the recorder's stop
    Window(wall(850), wall(880)),  # while no recorder ran
    Window(wall(1010), wall(1120)),  # over the beginning of the import
    Window(wall(-500), wall(-100)),
    Window(wall(5000), wall(6000)),
]


def seconds(from_s: float, to_s: float) -> Window:
    return Window(wall(from_s), wall(to_s))


def written(series: object, kind: type[RowType]) -> list[RowType]:
    """All rows that were written, on the wall clock."""
    assert callable(series)
    return [
        row.replace(time_ns=wall(second))
        for segment in SEGMENTS
        for second, row in series(*segment)
        if isinstance(row, kind)
    ]


def in_order(rows: Sequence[Row]) -> list[str]:
    return sorted(map(repr, rows))


# -- rows and state ------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS)
def test_the_rows_of_a_window(recording: Recording, window: Window) -> None:
    expected = [row for row in written(node.units, UnitRow) if window.holds(row.time_ns)]
    assert in_order(recording.rows(UnitRow, window)) == in_order(expected)
    counts = [row for row in written(node.zombies, MemoryCgroupsRow) if window.holds(row.time_ns)]
    assert recording.rows(MemoryCgroupsRow, window) == counts
    assert recording.rows(PressureRow, window) == []


def test_tables_that_have_rows(recording: Recording) -> None:
    assert recording.has("units", WHOLE)
    assert recording.has("units", seconds(0, 20))
    assert not recording.has("pressure", WHOLE)
    assert not recording.has("units", seconds(1110, END_S))  # of the import


@pytest.mark.parametrize(
    ("second", "loop_changed_s"), [(1, 1), (59, 1), (60, 60), (119, 60), (121, 121), (181, 180),
                                   (241, 241), (299, 241), (300, 300), (839, 420), (901, 901)],
)  # fmt: skip
def test_the_state_at_a_moment(recording: Recording, second: int, loop_changed_s: int) -> None:
    found = {row.unit: row for row in recording.state(UnitRow, wall(second))}
    assert found.keys() == {"ssh.service", "loop.service"}
    assert found["loop.service"].time_ns == wall(loop_changed_s)


def test_what_has_not_changed_for_nine_minutes_of_a_segment_is_known(recording: Recording) -> None:
    found = {row.unit: row for row in recording.state(UnitRow, wall(241 + 9 * 60))}
    assert found["ssh.service"].time_ns == wall(241)
    assert (found["ssh.service"].active, found["loop.service"].restarts) == ("active", 420)


def test_a_part_that_is_too_young_leaves_the_state_to_the_one_before(recording: Recording) -> None:
    found = {row.unit: row.time_ns for row in recording.state(UnitRow, wall(120.5))}
    assert found == {"ssh.service": wall(1), "loop.service": wall(60)}


def test_what_was_last_known_stays_for_a_while(recording: Recording) -> None:
    assert {row.restarts for row in recording.state(UnitRow, wall(870))} == {0, 420}
    assert {row.restarts for row in recording.state(UnitRow, wall(1150))} == {0, 960}
    assert recording.state(UnitRow, wall(3 * 3600)) == []
    assert recording.state(UnitRow, wall(0.5)) == []
    assert recording.state(ContainerRow, wall(100)) == []


# -- events, gaps ---------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS)
def test_the_events_of_a_window(recording: Recording, window: Window) -> None:
    rows = [
        row
        for segment in SEGMENTS
        for second, each in node.events(*segment)
        for row in [each.replace(time_ns=wall(second))]
        if window.holds(row.time_ns)
    ]
    found = recording.events(window)
    assert [event.time_ns for event in found] == sorted(row.time_ns for row in rows)
    assert {event.message for event in found} == {row.message for row in rows}
    resets = recording.events(window, "nic_reset")
    assert resets == [event for event in found if event.kind == "nic_reset"]


def test_what_the_kernel_log_remembered_is_history(recording: Recording) -> None:
    assert recording.history == Window(wall(node.HISTORY_S), wall(0))
    (event,) = recording.events(recording.history)
    assert (event.kind, event.message, event.time_ns) == (
        "nic_tx_timeout", "before", wall(node.HISTORY_S),
    )  # fmt: skip
    assert recording.extent.from_ns == wall(0)  # the recording does not begin there


def test_gaps_are_those_noted_and_the_time_between_two_runs(recording: Recording) -> None:
    found = [(gap.source, gap.from_ns, gap.to_ns, gap.lost) for gap in recording.gaps(WHOLE)]
    assert sorted(found) == sorted(
        [
            ("units", wall(30), wall(40), None),
            ("samples", wall(50), wall(55), 5),
            ("cores", wall(500), wall(520), None),
            ("all", wall(839.5), wall(900), None),
            ("all", wall(1019.5), wall(1100), None),
        ]
    )
    assert {len(gap.reason) for gap in recording.gaps(seconds(500, 501))} == {305}


@pytest.mark.parametrize(
    ("window", "sources"),
    [
        (seconds(60, 100), []),
        (seconds(35, 36), ["units"]),
        (seconds(850, 880), ["all"]),  # nothing else is there
        (seconds(830, 845), ["all"]),
        (seconds(890, 905), ["all"]),
        (seconds(2000, 3000), []),
    ],
)
def test_gaps_that_reach_into_a_window(
    recording: Recording, window: Window, sources: list[str]
) -> None:
    assert [gap.source for gap in recording.gaps(window)] == sources


# -- cores and samples ------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS)
def test_core_time_reaches_to_the_readings_beside_the_window(
    recording: Recording, window: Window
) -> None:
    wide = window.widened(10 * SECOND_NS)
    expected = {
        (row.cpu, wall(second), row.user, row.idle)
        for segment in SEGMENTS
        for second, row in node.cores(*segment)
        if wide.holds(wall(second))
    }
    found = set()
    for part in recording.core_readings(window):
        order = np.lexsort((part.time_ns, part.cpu))
        assert order.tolist() == list(range(len(order)))
        user, idle = (part.ticks[:, STATES.index(name)] for name in ("user", "idle"))
        found |= set(zip(*(each.tolist() for each in (part.cpu, part.time_ns, user, idle)),
                         strict=True))  # fmt: skip
    assert found == expected


def test_a_segment_begins_with_the_last_reading_of_the_one_before_of_its_run(
    recording: Recording,
) -> None:
    firsts = [int(part.time_ns.min()) for part in recording.core_readings(WHOLE)]
    assert firsts == [wall(0), wall(119), wall(239), wall(900)]


def test_how_many_cores_there_are(recording: Recording) -> None:
    assert recording.count_cores(WHOLE) == 2
    assert recording.count_cores(seconds(850, 880)) == 1


@pytest.mark.parametrize("window", WINDOWS)
def test_the_samples_of_a_window(recording: Recording, window: Window) -> None:
    expected = [
        wall(second)
        for segment in SEGMENTS
        for second in node.samples(*segment)
        if window.holds(wall(second))
    ]
    parts = list(recording.samples(window))
    assert [time for part in parts for time in part.time_ns.tolist()] == expected
    for part in parts:
        assert {part.comms[code] for code in part.profile_comm[part.profile].tolist()} <= {"app"}


# -- time and coverage --------------------------------------------------------------------


def test_from_when_to_when(recording: Recording) -> None:
    assert (recording.extent.from_ns, recording.extent.to_ns) == (wall(0), wall(1159.5) + 1)
    clipped = recording.extent.clip(seconds(-100, 20_000))
    assert clipped == Window(wall(0), wall(1159.5) + 1)
    assert recording.node_name == "recorded"
    names = [part.name for part in recording.parts]
    assert names == sorted(set(names))


def test_which_run_made_which_part(recording: Recording) -> None:
    starts = [part.description.start for part in recording.parts]
    assert [start.first_of_run for start in starts] == [True, False, False, True, True]
    assert [start.run_ns for start in starts] == [node.at(each) for each in (0, 0, 0, 900, 1100)]
    assert {start.boot_id for start in starts} == {"boot"}
    costs = [part.description.cost for part in recording.parts]
    assert [cost is not None and cost.cpu_last_ns is not None for cost in costs] == [
        True, True, True, True, False,
    ]  # fmt: skip


def spans(coverage: Coverage) -> list[tuple[int, int]]:
    return [(span.from_ns, span.to_ns) for span in coverage.spans]


RUN_1 = (wall(0), wall(839.5) + 1)
RUN_2 = (wall(900), wall(1019.5) + 1)
IMPORT = (wall(1100), wall(1159.5) + 1)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("memory_cgroups", [RUN_1, RUN_2]),
        ("containers", [RUN_1, RUN_2]),  # asked, and there was none
        ("pressure", []),  # never asked
        ("units", [(wall(0), wall(30)), (wall(40), RUN_1[1]), RUN_2]),
        ("cores", [(wall(0), wall(500)), (wall(520), RUN_1[1]), RUN_2]),
        ("samples", [RUN_1, RUN_2, IMPORT]),  # one core lost some, another did not
        ("profile", [RUN_1, RUN_2, IMPORT]),
        ("heartbeats", [RUN_1, RUN_2, IMPORT]),
        ("events", [RUN_1, RUN_2, IMPORT]),
    ],
)
def test_what_was_observed(
    recording: Recording, table: str, expected: list[tuple[int, int]]
) -> None:
    found = recording.coverage(table, WHOLE)
    assert spans(found) == expected
    assert bool(found) == bool(expected)
    assert not found.complete
    assert found.observed_ns == sum(to_ns - from_ns for from_ns, to_ns in expected)


def test_history_counts_for_events_only(recording: Recording) -> None:
    before = seconds(-500, 20)
    assert spans(recording.coverage("events", before)) == [(wall(node.HISTORY_S), wall(20))]
    assert spans(recording.coverage("units", before)) == [(wall(0), wall(20))]
    assert recording.coverage("events", seconds(-150, -100)).complete
    assert not recording.coverage("samples", seconds(-150, -100))


def test_nothing_to_tell_is_not_the_same_as_nobody_looked(recording: Recording) -> None:
    quiet = seconds(700, 800)
    for kind, observed in ((ContainerRow, True), (UnitRow, True), (PressureRow, False)):
        assert recording.rows(kind, quiet) == []
        coverage = recording.coverage(kind.table().name, quiet)
        assert (bool(coverage), coverage.complete) == (observed, observed)
    assert recording.coverage("pressure", quiet).missing == (quiet,)


def test_a_moment_is_observed_or_not(recording: Recording) -> None:
    units = recording.coverage("units", WHOLE)
    observed = [second for second in (20, 29, 30, 35, 40, 119.7, 839, 850, 950, 1050, 1110)
                if units.holds(wall(second))]  # fmt: skip
    assert observed == [20, 29, 40, 119.7, 839, 950]


def test_a_gap_is_seen_from_a_window_that_ends_before_it_is_noted(recording: Recording) -> None:
    assert not recording.coverage("units", seconds(31, 39))
    assert recording.coverage("units", seconds(41, 119)).complete


# -- what cannot be asked --------------------------------------------------------------------


def test_tables_and_columns_that_are_not_there(recording: Recording) -> None:
    part = recording.parts[0]
    with pytest.raises(UsageError, match="no table 'nothing'"):
        part.read("nothing")
    with pytest.raises(UsageError, match="no column 'nothing' in table units"):
        part.read("units", ["nothing"])
    assert len(part.read("pressure")) == 0


def test_a_core_that_is_still_pegged_is_left_out_where_its_end_was_reported() -> None:
    """Issue 13, point 6: one incident of sixteen seconds stood there twice, with two figures."""

    def pegged(subject: str, to_ns: int, *, ongoing: bool) -> EventRow:
        details = {"from_ns": 1, "to_ns": to_ns, "ongoing": ongoing}
        return EventRow(
            time_ns=1, kind="core_held", subject=subject, message=f"until {to_ns}",
            details=json.dumps(details),
        )  # fmt: skip

    recording = recording_of(
        [
            HeartbeatRow(time_ns=0, wall_ns=0),
            pegged("cpu1", 10, ongoing=True),
            pegged("cpu1", 16, ongoing=False),
            pegged("cpu2", 12, ongoing=True),
        ]
    )
    assert [each.message for each in recording.events(Window(0, 100))] == ["until 16", "until 12"]
