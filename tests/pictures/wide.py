"""An archive of many functions, written by columns: by hand it would take minutes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.analysis.conftest import HandClock

from nodescope.archive.writer import ArchiveWriter
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES

CPUS = 96


def write_wide(path: Path, functions: int) -> Path:
    """Every function in a sample of its own, below a shared one; 96 cores for 15 minutes."""
    clock = HandClock()
    start = clock.now
    rows = np.arange(functions)
    with ArchiveWriter.open(path, node={"name": "wide"}, clock=clock, tick_ns=1000) as writer:
        writer.append(
            "frames",
            {
                "module": ["/bin/wide"] * (functions + 1),
                "name": ["main", *(f"function_{number}_{'x' * 60}" for number in range(functions))],
                "kernel": [False] * (functions + 1),
            },
        )
        writer.append(
            "stacks",
            {"depth": np.append(0, np.ones(functions)).astype(int),
             "frame": np.arange(functions + 1)},
        )  # fmt: skip
        writer.append(
            "profile",
            {"stack": rows + 1, "comm": [f"thread-{number % 5000}" for number in range(functions)],
             "kernel": np.zeros(functions, bool), "samples": np.zeros(functions, int)},
        )  # fmt: skip
        writer.append(
            "samples",
            {"cpu": rows % CPUS, "tick": start // 1000 + rows * 9_000, "pid": rows,
             "thread": np.zeros(functions, int), "cgroup": ["/"] * functions, "profile": rows},
        )  # fmt: skip
        seconds = np.tile(np.arange(900), CPUS)
        spent = {state: seconds * (17 + number) for number, state in enumerate(STATES)}
        zero = np.zeros(CPUS * 900, int)
        writer.append(
            "cores",
            {"cpu": np.repeat(np.arange(CPUS), 900), "time_ns": start + seconds * SECOND_NS,
             **spent, "guest": zero, "guest_nice": zero},
        )  # fmt: skip
        clock.now += 900 * SECOND_NS
    return path
