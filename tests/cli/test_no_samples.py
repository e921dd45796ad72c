"""Views without samples say why: none taken, none busy, or none that matches the filter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.analysis.conftest import SAMPLES, START, write_archive

from nodescope.analysis.no_samples import explain_no_samples
from nodescope.clock import SystemClock
from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import MemoryWriter
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.columns import columns_of
from nodescope.records.event import Event
from nodescope.records.recorder_tables import HeartbeatRow
from nodescope.records.sample_filter import SampleFilter

if TYPE_CHECKING:
    from tests.cli.conftest import Nodescope

DENIED = "no samples are taken: perf_event_open: Permission denied; `nodescope doctor` says more"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_archive(tmp_path / "archive", [SAMPLES]).root


@pytest.mark.parametrize("view", ["top", "flame", "heatmap"])
@pytest.mark.parametrize("words", [["--comm", "nosuch"], ["--pid", "99999999"]])
def test_a_filter_that_matches_nothing_is_named(
    nodescope: Nodescope, archive: Path, view: str, words: list[str]
) -> None:
    result = nodescope(view, *words, "--archive", archive)
    assert result.code == 0
    said = result.out + result.err
    assert f"none of {len(SAMPLES)} samples matches {words[0][2:]}={words[1]} (" in said


def test_compare_says_why_instead_of_comparing(nodescope: Nodescope, archive: Path) -> None:
    result = nodescope("compare", "--last", "1h", "--comm", "nosuch", "--archive", archive)
    assert result.out == ""
    assert "matches comm=nosuch" in result.err


def test_similar_names_are_offered(nodescope: Nodescope, archive: Path) -> None:
    name = SAMPLES[0].comm
    out = nodescope("top", "--comm", f"{name}x", "--archive", archive).out
    assert "similar names: " in out
    assert name in out.partition("similar names: ")[2]


def recorded(frequency_hz: int, *events: Event) -> Recording:
    writer = MemoryWriter({"name": "n"}, SystemClock(), 1000)
    now = SystemClock().monotonic_ns()
    beats = [
        HeartbeatRow(time_ns=now + at, wall_ns=START + at, rss_bytes=1, frequency_hz=frequency_hz)
        for at in (0, 10 * SECOND_NS)
    ]
    writer.append("heartbeats", columns_of(beats))
    if events:
        fields = [(each.kind, each.subject, each.message) for each in events]
        kinds, subjects, messages = (list(column) for column in zip(*fields, strict=True))
        writer.append("events", {
            "time_ns": [now + 1] * len(fields), "kind": kinds, "subject": subjects,
            "cpu": [None] * len(fields), "message": messages, "details": [""] * len(fields),
        })  # fmt: skip
    return writer.finish()


@pytest.mark.parametrize(
    ("frequency_hz", "events", "expected"),
    [
        (0, [Event(0, "source_denied", "samples", DENIED)], "were taken: perf_event_open"),
        (0, [], "no samples: the recording does not say why"),
        (97, [], "the cores were sampled, and none was busy"),
    ],
)
def test_what_was_not_sampled_is_not_called_idle(
    frequency_hz: int, events: list[Event], expected: str
) -> None:
    recording = recorded(frequency_hz, *events)
    window = Window(recording.extent.from_ns, recording.extent.to_ns)
    assert expected in explain_no_samples(recording, window, SampleFilter())
