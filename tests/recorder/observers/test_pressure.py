from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernel_files import PSI, write

from nodescope.errors import SourceAbsent
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.pressure import PressureObserver
from nodescope.records.node_tables import PressureRow
from nodescope.sources.places import Places


def _rows(observer: PressureObserver) -> list[tuple[str, str, int | None, int | None]]:
    rows = observer.observe(7).rows_of(PressureRow)
    return [(row.cgroup, row.resource, row.some_us, row.full_us) for row in rows]


def test_totals_that_moved_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "proc/pressure"
    write(folder, {"cpu": PSI.format(some=1, full=0), "memory": PSI.format(some=5, full=4)})
    observer = PressureObserver(Places(tmp_path))
    assert _rows(observer) == [("", "cpu", 1, 0), ("", "memory", 5, 4)]
    assert _rows(observer) == []
    write(folder, {"memory": PSI.format(some=6, full=4)})
    assert _rows(observer) == [("", "memory", 6, 4)]
    observer.begin_segment()
    assert len(_rows(observer)) == 2
    observer.close()


def test_kernels_without_pressure(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        PressureObserver(Places(tmp_path)).observe(0)


def test_a_minute_of_waiting_for_memory_is_an_event(tmp_path: Path) -> None:
    folder = tmp_path / "proc/pressure"
    observer = PressureObserver(Places(tmp_path))
    events = []
    for at in range(40):
        write(folder, {"memory": PSI.format(some=0, full=at * 500_000)})  # a quarter of 2 s
        events += observer.observe(at * 2 * SECOND_NS).events
    assert [event.kind for event in events] == ["memory_pressure"]
