"""Where a segment ends: what its recorder wrote, and no event that is dated later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from nodescope.archive.reader import Archive, Segment
from nodescope.quantities import HOUR_NS, SECOND_NS

if TYPE_CHECKING:
    from tests.archive.conftest import Studio

YEAR_NS = 8766 * HOUR_NS
RSS = 50 << 20


def write(studio: Studio, *event_times_ns: int, rss_bytes: int | None = RSS) -> Segment:
    tape = studio.open()
    times = list(event_times_ns)
    texts = {"kind": "mark", "subject": "node", "message": "", "details": ""}
    for beat in range(3):
        tape.beat(studio.clock, rss_bytes=rss_bytes)  # type: ignore[arg-type]
        studio.clock.advance(SECOND_NS if beat < 2 else 0)
    columns: dict[str, Sequence[object]] = {"time_ns": times}
    columns |= {name: [text] * len(times) for name, text in texts.items()}
    tape.writer.append("events", columns)
    tape.seal()
    tape.writer.close()
    (segment,) = Archive.open(studio.root).segments()
    return segment


@pytest.mark.parametrize("ahead_ns", [1, 5 * SECOND_NS, 4 * YEAR_NS])
def test_an_event_after_the_last_heartbeat_does_not_stretch_the_recording(
    studio: Studio, ahead_ns: int
) -> None:
    end_ns = studio.clock.monotonic + 2 * SECOND_NS
    segment = write(studio, end_ns - 1, end_ns + ahead_ns)
    assert segment.description.to_ns == end_ns
    assert segment.wall_to_ns == studio.clock.wall
    assert len(segment.read("events")) == 2  # the event itself is kept
    assert segment.description.wall_history_ns is None


def test_events_are_all_there_is_of_an_imported_log(studio: Studio) -> None:
    end_ns = studio.clock.monotonic + YEAR_NS
    assert write(studio, end_ns, rss_bytes=None).description.to_ns == end_ns


def test_a_segment_that_an_earlier_version_stretched_ends_where_its_recorder_did(
    studio: Studio,
) -> None:
    segment = write(studio, studio.clock.monotonic)
    path = studio.root / "segments" / segment.name / "segment.json"
    content = json.loads(path.read_text())
    true_end = content["to_ns"], content["wall_to_ns"]
    content["to_ns"] += 4 * YEAR_NS
    content["wall_to_ns"] += 4 * YEAR_NS
    path.write_text(json.dumps(content))
    (read,) = Archive.open(studio.root).segments()
    assert (read.description.to_ns, read.wall_to_ns) == true_end
