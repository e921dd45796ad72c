from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.sources.processes.unreaped import Stat, parse_stat, read_ended, read_stat


def test_a_name_may_hold_anything() -> None:
    assert parse_stat(b"12 (a) Z 1 (b) Z 7 12 12 0") == Stat("a) Z 1 (b", "Z", 7)
    assert parse_stat(b"") is None
    assert parse_stat(b"12 (a) Z") is None


def test_only_one_that_has_ended_is_read_as_such(tmp_path: Path) -> None:
    for pid, content in ((1, b"1 (a) Z 7 1"), (2, b"2 (a) Z ) S 7 1"), (3, b"3 (a) R 7 1")):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_bytes(content)
    assert read_ended(tmp_path, 1) == Stat("a", "Z", 7)
    assert [read_ended(tmp_path, pid) for pid in (2, 3, 4)] == [None, None, None]


@pytest.mark.live
def test_a_child_that_nobody_reaps_is_in_state_z() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    proc = Path("/proc")
    wait_for(lambda: (read_stat(proc, child.pid) or Stat("", "", 0)).state == "Z", "it ended")
    stat = read_stat(proc, child.pid)
    assert stat is not None
    assert stat.parent == os.getpid()
    child.wait()
    assert read_stat(proc, child.pid) is None
