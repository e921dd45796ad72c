"""What observers say, through a real recorder into an archive."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nodescope.archive.reader import Archive
from nodescope.archive.retention import read_frozen
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.options import RecorderOptions
from nodescope.recorder.recorder import Recorder
from nodescope.records.event import Event
from nodescope.records.node_tables import MemoryRow, PressureRow
from nodescope.records.table import Row


class OneRow:
    """Says the same each time; when it has said it, `then` is called."""

    interval_ns = SECOND_NS
    patient = False

    def __init__(self, row: Row) -> None:
        self._row = row
        self.then: Callable[[], None] = lambda: None

    def begin_segment(self) -> None:
        pass

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        said.add(self._row.replace(time_ns=now_ns))
        said.events.append(Event(time.monotonic_ns(), "nic_reset", "eth9", "reset"))
        self.then()
        return said

    def close(self) -> None:
        pass


@pytest.mark.live
def test_rows_that_do_not_fit_cost_themselves_and_serious_events_freeze(tmp_path: Path) -> None:
    said: list[str] = []
    options = RecorderOptions(tmp_path / "archive", frequency_hz=1)
    good = OneRow(MemoryRow(time_ns=0, name="MemFree", value=1))
    bad = OneRow(PressureRow(time_ns=0, cgroup="", resource="cpu").replace(some_us="not a number"))
    with ArchiveWriter.open(
        options.archive, node={"boot_id": "b"}, clock=SystemClock(), tick_ns=1000
    ) as writer:
        recorder = Recorder(
            options, writer, observers={"good": good, "bad": bad}, report=said.append
        )
        bad.then = recorder.stop  # it is the last to be asked
        recorder.run()
    (segment,) = Archive.open(options.archive).segments()
    assert set(segment.read("memory").column("name").to_pylist()) == {"MemFree"}
    assert len(segment.read("pressure")) == 0
    reasons = {gap["reason"] for gap in segment.read("gaps").to_pylist()}
    assert any(reason.startswith("a defect of ours: table pressure") for reason in reasons)
    assert any("table pressure" in line for line in said)
    kinds = segment.read("events").column("kind").to_pylist()
    assert {"nic_reset", "frozen"} <= set(kinds)
    assert [frozen.reason for frozen in read_frozen(options.archive)] == [
        "nic_reset on eth9: reset"
    ]
