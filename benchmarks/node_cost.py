"""The whole recorder with every observer of the node on: its CPU and memory here, under the same
load of many short processes (ten minutes), and with 2,000 live cgroups beside it (two).

CPU is user and system time of the recorder by wait4(2), start-up and sealing included. With
2,000 cgroups the budget is raised (`--budget-cpu 5%`), so that nothing is measured at a
lowered rate; the rate in every heartbeat is shown. What each observer cost is the
recorder's own table `source_costs`.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.recorder.test_recording import NODESCOPE, column

from benchmarks.load import many_short_processes
from benchmarks.measured import Measured, run_measured
from benchmarks.results import Bar, Grid, Options, Result
from nodescope.archive.reader import Archive

CGROUPS = 2000
CPU_BAR, MEMORY_BAR, MANY_BAR = 0.01, 130e6, 0.03


@contextmanager
def many_cgroups(count: int) -> Iterator[None]:
    """Live cgroups in the memory and the CPU hierarchy, a hundred of them with a task."""
    name = f"nodescope-bench-{os.getpid()}"
    tops = [
        Path(mount, name)
        for mount in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu")
        if Path(mount).is_dir()
    ] or [Path("/sys/fs/cgroup", name)]
    made: list[Path] = []
    try:
        for top in tops:
            top.mkdir()
            made.append(top)
            for number in range(count // len(tops)):
                path = top / f"pod{number:04d}"
                path.mkdir()
                made.append(path)
        yield
    finally:
        for path in reversed(made):
            path.rmdir()


def run(options: Options) -> Result:
    here_s, many_s = (20, 20) if options.quick else (600, 120)
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as folder:
        with many_short_processes():
            time.sleep(5)
            here = _record(Path(folder, "here"), here_s)
            with many_cgroups(CGROUPS):
                many = _record(Path(folder, "many"), many_s, "--budget-cpu", "5%")
        rates = [_rates(Path(folder, name)) for name in ("here", "many")]
        costs = [_costs(Path(folder, name)) for name in ("here", "many")]
    bars = (
        Bar("everything on: CPU of one core", "≤ 1 %", f"{here.cpu_ratio:.3%}",
            here.cpu_ratio <= CPU_BAR),
        Bar("everything on: memory, peak", "≤ 130 MB", f"{here.peak_bytes / 1e6:.1f} MB",
            here.peak_bytes <= MEMORY_BAR),
        Bar("with 2,000 live cgroups: CPU of one core", "≤ 3 %", f"{many.cpu_ratio:.3%}",
            many.cpu_ratio <= MANY_BAR),
    )  # fmt: skip
    rows = tuple(
        (name, *(f"{cost.get(name, 0.0):.3%}" for cost in costs))
        for name in sorted(costs[1] | costs[0], key=lambda each: -costs[1].get(each, 0.0))
    )
    in_force = f"{rates[0]} Hz here, {rates[1]} Hz with {CGROUPS:,} cgroups"
    notes = (
        f"Sampling rates in force: {in_force} ({many.peak_bytes / 1e6:.1f} MB).",
        f"Without the first 30 s: {here.steady_ratio(30):.3%} and {many.steady_ratio(30):.3%}.",
    )
    grid = Grid("By observer, of one core", ("observer", "here", "2,000 cgroups"), rows)
    return Result(bars, (grid,), notes, {})


def _record(archive: Path, seconds: int, *more: str) -> Measured:
    command = [*NODESCOPE, "record", "--archive", str(archive), "--duration", f"{seconds}s", *more]
    measured = run_measured(command)
    if measured.returncode != 0:
        raise SystemExit(f"the recorder failed: {measured.stderr[-2000:]}")
    return measured


def _rates(archive: Path) -> str:
    found = {
        int(rate)
        for segment in Archive.open(archive).segments()
        for rate in column(segment, "heartbeats", "frequency_hz")
    }
    return ", ".join(map(str, sorted(found)))


def _costs(archive: Path) -> dict[str, float]:
    """Share of a core by observer, over the run."""
    last: dict[str, tuple[int, int]] = {}
    first = 0
    for segment in Archive.open(archive).segments():
        first = first or segment.description.from_ns
        for row in segment.read("source_costs").to_pylist():
            last[row["source"]] = (row["time_ns"], row["cpu_ns"])
    return {name: cpu / max(1, time_ns - first) for name, (time_ns, cpu) in last.items()}
