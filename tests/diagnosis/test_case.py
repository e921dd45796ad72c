"""What a case knows of beyond its window."""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.recording.memory import recording_of
from nodescope.recording.window import Window
from nodescope.records.node_tables import SourceCostRow
from nodescope.records.recorder_tables import HeartbeatRow


def test_an_observer_that_had_nothing_to_tell_is_not_missing() -> None:
    asked = SourceCostRow(time_ns=5, source="kernel_log")
    case = Case(recording_of([asked, HeartbeatRow(time_ns=5, wall_ns=5)]), Window(0, 10))
    assert case.observed("kernel_log")
    assert not case.observed("units")
    assert not case.recorded("kernel_log")
