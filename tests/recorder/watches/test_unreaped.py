from __future__ import annotations

import shutil
from pathlib import Path

from tests.kernel_files import write

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.unreaped import UnreapedWatch
from nodescope.records.event import Event
from nodescope.records.trouble_details import ReapingDetails


def _process(proc: Path, pid: int, state: str, parent: int, comm: str = "sh") -> None:
    write(proc / str(pid), {"stat": f"{pid} ({comm}) {state} {parent} 1 1 0\n"})


def _look(watch: UnreapedWatch, minutes: int) -> list[Event]:
    """Look every ten seconds."""
    found = []
    for at in range(minutes * 6):
        found += watch.look((at + 1) * 10 * SECOND_NS)
    return found


def test_many_ended_children_of_one_parent_for_minutes(tmp_path: Path) -> None:
    _process(tmp_path, 50, "S", 1, "agent")
    write(tmp_path / "50", {"cgroup": "0::/system.slice/agent.service\n"})
    for pid in range(100, 125):
        _process(tmp_path, pid, "Z", 50)
    for pid in range(200, 600):  # more than are looked at in one round
        _process(tmp_path, pid, "Z" if pid < 210 else "S", 1)
    watch = UnreapedWatch(tmp_path)
    assert _look(watch, 4) == []
    (event,) = _look(watch, 12)
    details = event.get(ReapingDetails)
    assert (details.parent, details.pid, details.count) == ("agent", 50, 25)
    assert details.cgroup == "/system.slice/agent.service"


def test_children_that_are_reaped_in_time_are_none(tmp_path: Path) -> None:
    watch = UnreapedWatch(tmp_path)
    for at in range(60):
        for pid in range(100, 130):
            _process(tmp_path, pid + 100 * (at % 2), "Z", 50)
        assert watch.look(at * 10 * SECOND_NS) == []
        for pid in range(100, 130):
            shutil.rmtree(tmp_path / str(pid + 100 * (at % 2)))
