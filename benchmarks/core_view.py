"""A kernel-busy process pinned to one core for 3 s while the others idle: the lowest share of
system time that the archive shows for that core in a whole second inside, over five runs.

The process reads /dev/urandom, says itself on the monotonic clock when it began
and ended, and only intervals of `cores` wholly inside count: two or three per
run. It runs at the highest priority that is not real-time.

How it could be fooled: by counting the edges (they are left out), by a core
that was busy anyway (the share of the same core in the seconds before is
shown), or by time that the hypervisor took (steal is in the total, and lowers
the share). `/proc/stat` counts in ticks of 10 ms: a share is a hundredth.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tests.recorder_process import KERNEL_BUSY, column, recording

from benchmarks.results import Bar, Grid, Options, Result
from nodescope.archive.reader import Archive

SECONDS = 3.0
STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def run(options: Options) -> Result:
    cpu = max(os.sched_getaffinity(0))
    shares, before = [], []
    for _ in range(2 if options.quick else 5):
        with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as name:
            inside, outside = _one(Path(name) / "run" / "archive", cpu)
        shares.append(inside)
        before.append(outside)
    lowest = min(float(each.min()) for each in shares)
    whole = min(len(each) for each in shares)
    bars = (
        Bar("lowest system share of that core", "≥ 95 %", f"{lowest:.1%}", lowest >= 0.95),
        Bar("whole seconds inside, in every run", "≥ 2", str(whole), whole >= 2),
    )
    rows = tuple(
        (
            str(number),
            ", ".join(f"{share:.0%}" for share in inside),
            f"{outside:.0%}",
        )
        for number, (inside, outside) in enumerate(zip(shares, before, strict=True), 1)
    )
    grid = Grid(
        f"CPU {cpu}", ("run", "system, second by second", "busy in the second before"), rows
    )
    return Result(bars, (grid,))


def _one(archive: Path, cpu: int) -> tuple[npt.NDArray[np.float64], float]:
    """The system share of each whole second inside, and how busy the core was before."""
    archive.parent.mkdir()
    with recording(archive):
        time.sleep(2)
        busy = subprocess.run(
            [sys.executable, "-c", KERNEL_BUSY, str(cpu), str(SECONDS)],
            check=True,
            capture_output=True,
            text=True,
        )
    begin, end = (int(word) for word in busy.stdout.split())
    (segment,) = Archive.open(archive).segments()
    mine = column(segment, "cores", "cpu") == cpu
    times = column(segment, "cores", "time_ns")[mine]
    spent = {state: np.diff(column(segment, "cores", state)[mine]) for state in STATES}
    total = np.sum(list(spent.values()), axis=0)
    inside = (times[:-1] > begin) & (times[1:] < end)
    earlier = np.flatnonzero(times[1:] < begin)
    idle = spent["idle"] + spent["iowait"]
    was_busy = 1 - float(idle[earlier[-1]] / total[earlier[-1]]) if len(earlier) else float("nan")
    return spent["system"][inside] / total[inside], was_busy
