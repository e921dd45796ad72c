"""Tables that nobody filled at a moment are named, with since when."""

from __future__ import annotations

from nodescope.judgement.lapses import describe_lapse
from nodescope.quantities import HOUR_NS, MINUTE_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.recording import Recording
from nodescope.records.node_tables import ContainerRow
from nodescope.records.recorder_tables import Gap, HeartbeatRow
from nodescope.records.table import Row
from nodescope.wall_time import format_moment

DAY = 20_000 * 24 * HOUR_NS


def part(from_ns: int, to_ns: int, *rows: Row) -> Recording:
    ends = (HeartbeatRow(time_ns=at, wall_ns=at) for at in (from_ns, to_ns))
    return recording_of([*ends, *rows])


def container(at_ns: int) -> ContainerRow:
    return ContainerRow(time_ns=at_ns, runtime="docker", id="c1", name="web")


def test_a_table_that_was_never_filled_is_named() -> None:
    recording = part(DAY, DAY + HOUR_NS)
    assert describe_lapse(recording, "containers", "containers", DAY + HOUR_NS) == "containers"


def test_a_table_that_is_filled_is_not_named() -> None:
    recording = part(DAY, DAY + HOUR_NS, container(DAY + 1))
    assert describe_lapse(recording, "containers", "containers", DAY + HOUR_NS) is None


def test_a_table_that_is_filled_no_more_is_named_with_since_when() -> None:
    last, end = DAY + 20 * MINUTE_NS, DAY + HOUR_NS
    gap = Gap(from_ns=last, to_ns=end + MINUTE_NS, source="containers", reason="no daemon")
    recording = part(DAY, end, container(DAY + 1), gap)
    said = describe_lapse(recording, "containers", "containers", end - 1)
    assert said == f"containers (since {format_moment(last)})"
    assert describe_lapse(recording, "containers", "containers", last + MINUTE_NS) is None
