from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.perf import perf_records as make

from nodescope.analysis.quality import unresolved
from nodescope.perf.decode import split
from nodescope.recorder.samples.profiler import Profiler

KERNEL, CODE, JIT = 0xFFFFFFFF81000000, 0x400000, 0x7F0000000000


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A node with one process, whose binary is none and whose JIT writes no map."""
    (tmp_path / "kallsyms").write_text(f"{KERNEL:x} T _text\n{KERNEL + 0x100:x} T _etext\n")
    (tmp_path / "9/root/bin").mkdir(parents=True)
    (tmp_path / "9/root/bin/odd").write_text("no ELF")
    uid = os.geteuid()
    (tmp_path / "9/status").write_text(f"Uid:\t{uid}\t{uid}\nNSpid:\t9\n")
    return tmp_path


def test_every_frame_without_a_name_has_a_counted_reason(proc: Path) -> None:
    profiler = Profiler(proc, 1000)
    inode = (proc / "9/root/bin/odd").stat()
    device = os.major(inode.st_dev), os.minor(inode.st_dev)
    stray = 0x123456789ABC
    records = (
        make.fork(9, 1, 1)
        + make.comm(9, 9, 2, "odd", executed=True)
        + make.mmap2(9, 3, CODE, 0x10000, "/bin/odd", inode=inode.st_ino, device=device)
        + make.mmap2(9, 4, JIT, 0x10000, "//anon", inode=0, device=(0, 0))
        + make.sample(9, 9, 5, user=[JIT + 0x10, CODE + 0x20], kernel=[KERNEL + 1])
        + make.sample(9, 9, 6, user=[JIT + 0x10, JIT + 0x30, CODE + 0x21])
        + make.sample(9, 9, 7, user=[CODE + 0x40, stray, stray + 8])
        + make.sample(9, 9, 8, user=[CODE + 0x40], kernel=[KERNEL + 0x5000, KERNEL + 2])
        + make.sample(66, 66, 9, user=[CODE])
    )
    profiler.process([split(0, records)], cgroup=False)
    frames = profiler._stacks.frames
    unnamed = int(unresolved([frame.name for frame in frames]).sum())
    reasons = profiler.unresolved()
    # JIT code is one frame, and so is all that is in no mapping; it counts by place.
    assert reasons == {
        "not ELF": 3, "absent": 2, "no mapping": 1, "process gone": 1, "no kernel function": 1,
    }  # fmt: skip
    assert sum(reasons.values()) == unnamed + 2
    profiler.close()


def test_records_that_were_lost_are_a_reason_to_doubt_the_kernels_symbols(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler = Profiler(proc, 1000)
    assert profiler._kernel is not None
    doubted: list[bool] = []
    monkeypatch.setattr(profiler._kernel, "doubt", lambda: doubted.append(True))
    profiler.process([split(0, make.sample(9, 9, 5, kernel=[KERNEL]))], cgroup=False)
    assert doubted == []
    profiler.process([split(0, make.lost(3, 6))], cgroup=False)
    profiler.forget()
    assert doubted == [True, True]
    profiler.close()
