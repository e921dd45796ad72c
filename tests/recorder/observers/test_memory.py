from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernel_files import write

from nodescope.errors import SourceAbsent
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.memory import MEMINFO, VMSTAT, MemoryObserver
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.node_tables import MemoryRow
from nodescope.sources.node.meminfo import read_meminfo
from nodescope.sources.node.vmstat import read_vmstat
from nodescope.sources.places import Places


def _rows(observer: MemoryObserver) -> dict[str, int]:
    rows = observer.observe(7).rows_of(MemoryRow)
    assert all(row.time_ns == 7 for row in rows)
    return {row.name: row.value for row in rows}


def test_chosen_lines_are_told_when_they_changed(tmp_path: Path) -> None:
    write(tmp_path / "proc", {
        "meminfo": "MemFree: 10 kB\nPercpu: 5 kB\nVmallocTotal: 9 kB\n",
        "vmstat": "pgscan_direct 1\nallocstall_normal 2\npgscan_direct_dma32 3\nnr_dirty 4\n",
    })  # fmt: skip
    observer = MemoryObserver(Places(tmp_path))
    whole = {"MemFree": 10240, "Percpu": 5120, "pgscan_direct": 1, "allocstall_normal": 2,
             "pgscan_direct_dma32": 3}  # fmt: skip
    assert _rows(observer) == whole
    assert _rows(observer) == {}
    write(tmp_path / "proc", {"meminfo": "MemFree: 11 kB\nPercpu: 5 kB\n"})
    assert _rows(observer) == {"MemFree": 11264}
    observer.begin_segment()
    assert len(_rows(observer)) == 5


def _count_kills(proc: Path, kills: int) -> None:
    write(proc, {"meminfo": "MemFree: 10 kB\n", "vmstat": f"oom_kill {kills}\n"})


@pytest.mark.parametrize(
    ("log_is_read", "cgroup_has_it", "reported"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_kills_that_nobody_else_reports_are_an_event(
    tmp_path: Path, log_is_read: bool, cgroup_has_it: bool, reported: bool
) -> None:
    reports = LogReports()
    if log_is_read:
        reports.note_read(0)
    observer = MemoryObserver(Places(tmp_path), reports)
    events = []
    for at, kills in enumerate((3, 5, 5)):
        _count_kills(tmp_path / "proc", kills)
        events += observer.observe(at * 10 * SECOND_NS).events
        if at == 1 and cgroup_has_it:  # read in the same round, a moment later
            reports.tell(at * 10 * SECOND_NS, "oom_kill", ("/pods/a",))
    assert [event.kind for event in events] == ["oom_kill"] * reported


@pytest.mark.live
def test_this_machine_has_what_is_chosen() -> None:
    """Names are not misspelt; kernels built without swap or huge pages lack some."""
    assert len(MEMINFO & set(read_meminfo())) >= len(MEMINFO) - 4
    assert len(VMSTAT & set(read_vmstat())) >= len(VMSTAT) - 8


def test_a_node_without_memory(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        MemoryObserver(Places(tmp_path)).observe(0)
