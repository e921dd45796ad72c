"""The whole recorder with every observer of the node on: its CPU and memory here, under the same
load of many short processes (ten minutes), and with 2,000 live cgroups beside it (two).

Starting is measured before, without a load: one second of `nodescope record`, start to end.
The 2,000 are paths that stand in every hierarchy the recorder reads, a hundred of them
with a task that wakes once a second; how many of them it recorded is shown. CPU is user
and system time of the recorder by wait4(2), sealing included; the steady state leaves the
first 30 s out. Modules are compiled, as those of an installed package are. With 2,000 cgroups
the budget is raised (`--budget-cpu 5%`), so that nothing is measured at a lowered rate; the
rate in every heartbeat is shown. What each observer cost is the recorder's own table
`source_costs`. Bytes per sample are those of the ten minutes, every table included; the bar of
3 bytes is of samples and cores alone, which `recorder_cost` measures.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from tests.recorder_process import NODESCOPE, column, status

from benchmarks.live_cgroups import NAME, live_cgroups
from benchmarks.load import many_short_processes
from benchmarks.measured import Measured, compiled_modules, run_measured
from benchmarks.results import Bar, Grid, Options, Result
from nodescope.archive.reader import Archive

CGROUPS, TASKS = 2000, 100
CPU_BAR, MEMORY_BAR, MANY_BAR = 0.006, 80e6, 0.03
START_BAR, STARTS, STEADY_S = 0.6, 5, 30.0


def run(options: Options) -> Result:
    here_s, many_s = (20, 20) if options.quick else (600, 120)
    steady_s = 5.0 if options.quick else STEADY_S
    with (
        tempfile.TemporaryDirectory(prefix="nodescope-bench-") as folder,
        compiled_modules(_command(Path(folder, "first"), 1)),
    ):
        start_s = min(_record(Path(folder, f"start{n}"), 1).cpu_s for n in range(STARTS))
        with many_short_processes():
            time.sleep(5)
            here = _record(Path(folder, "here"), here_s)
            with live_cgroups(CGROUPS, TASKS):
                many = _record(Path(folder, "many"), many_s, "--budget-cpu", "5%")
        rates = [_rates(Path(folder, name)) for name in ("here", "many")]
        shown = status(Path(folder, "here"))
        seen = _cgroups(Path(folder, "many"))
        costs = [_costs(Path(folder, name)) for name in ("here", "many")]
    bars = (
        Bar("everything on: CPU of one core, steady", "≤ 0.6 %",
            f"{here.steady_ratio(steady_s):.3%} ({here.cpu_ratio:.3%} with start-up)",
            here.steady_ratio(steady_s) <= CPU_BAR),
        Bar("everything on: CPU of a recording of 1 s, so of starting", "≤ 0.6 s",
            f"{start_s:.2f} s", start_s <= START_BAR),
        Bar("everything on: memory, peak", "≤ 80 MB", f"{here.peak_bytes / 1e6:.1f} MB",
            here.peak_bytes <= MEMORY_BAR),
        Bar("with 2,000 live cgroups: CPU of one core", "≤ 3 %", f"{many.cpu_ratio:.3%}",
            many.cpu_ratio <= MANY_BAR),
        Bar("everything on: bytes per sample", "none: the 3 of `recorder_cost` are of samples and "
            "cores alone", f"{shown['bytes_per_sample']:.2f}"),
    )  # fmt: skip
    rows = tuple(
        (name, *(f"{cost.get(name, 0.0):.3%}" for cost in costs))
        for name in sorted(costs[1] | costs[0], key=lambda each: -costs[1].get(each, 0.0))
    )
    in_force = f"{rates[0]} Hz here, {rates[1]} Hz with {CGROUPS:,} cgroups"
    notes = (
        f"Sampling rates in force: {in_force} ({many.peak_bytes / 1e6:.1f} MB).",
        f"Cgroups recorded of the {CGROUPS:,} and their parent: {seen:,}.",
        f"Steady with {CGROUPS:,} cgroups: {many.steady_ratio(steady_s):.3%} of one core.",
    )
    grid = Grid("By observer, of one core", ("observer", "here", "2,000 cgroups"), rows)
    return Result(bars, (grid,), notes, {})


def _command(archive: Path, seconds: int) -> list[str]:
    return [*NODESCOPE, "record", "--archive", str(archive), "--duration", f"{seconds}s"]


def _record(archive: Path, seconds: int, *more: str) -> Measured:
    measured = run_measured([*_command(archive, seconds), *more])
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


def _cgroups(archive: Path) -> int:
    """How many of those made for this are in the recording."""
    found: set[str] = set()
    for segment in Archive.open(archive).segments():
        found.update(segment.read("cgroups", ["cgroup"]).column("cgroup").to_pylist())
    return sum(path.startswith(f"/{NAME}") for path in found)


def _costs(archive: Path) -> dict[str, float]:
    """Share of a core by observer, over the run."""
    last: dict[str, tuple[int, int]] = {}
    first = 0
    for segment in Archive.open(archive).segments():
        first = first or segment.description.from_ns
        for row in segment.read("source_costs").to_pylist():
            last[row["source"]] = (row["time_ns"], row["cpu_ns"])
    return {name: cpu / max(1, time_ns - first) for name, (time_ns, cpu) in last.items()}
