"""How long views take: as a process from start to finish, and inside one that has all imported.

`python -m benchmarks.view_times` is the latter: it reads commands on its input and runs each
of them several times.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time

from benchmarks.measured import Measured, run_measured
from benchmarks.results import Bar

MB = 1e6
REPEATS = 5
NODESCOPE = [sys.executable, "-m", "nodescope.cli.main"]


class Measure:
    """Runs processes, and keeps a row of each."""

    def __init__(self, rows: list[tuple[str, ...]]) -> None:
        self.rows = rows
        self.inside: list[tuple[str, ...]] = []
        self.cpu_s = 0.0
        self.cpu_of: dict[str, float] = {}  # of a view inside a process

    def process(self, label: str, command: list[str], *, may_fail: bool = False) -> Measured:
        """One process, from start to finish."""
        found = run_measured(command, interval_s=0.02)
        self.cpu_s += found.cpu_s
        print(f"   {label}: {found.cpu_s:.2f} s CPU, {found.wall_s:.2f} s", flush=True)
        if found.returncode and not may_fail:
            raise RuntimeError(f"{command}: exit code {found.returncode}: {found.stderr[-2000:]}")
        self.rows.append((
            label, f"{found.cpu_s:.2f}", f"{found.wall_s:.2f}", f"{found.peak_bytes / MB:.0f}",
        ))  # fmt: skip
        return found

    def nodescope(self, label: str, *arguments: str, may_fail: bool = False) -> Measured:
        return self.process(label, [*NODESCOPE, *arguments], may_fail=may_fail)

    def views(self, commands: dict[str, list[str]], repeats: int = REPEATS) -> dict[str, float]:
        """The median time of each command inside one process."""
        asked = json.dumps([repeats, commands])
        command = [sys.executable, "-m", "benchmarks.view_times"]
        output = subprocess.run(command, input=asked.encode(), stdout=subprocess.PIPE, check=True)
        found: dict[str, list[tuple[float, float]]] = json.loads(output.stdout)
        medians = {}
        for label, times in found.items():
            wall, cpu = (statistics.median(each) for each in zip(*times, strict=True))
            medians[label] = wall
            self.cpu_of[label] = cpu
            self.inside.append((label, f"{wall:.3f}", f"{max(times)[0]:.3f}", f"{cpu:.3f}"))
            print(f"   inside: {label}: {wall:.3f} s, {cpu:.3f} s CPU", flush=True)
        return medians


def limit_bar(name: str, limit: float, value: float, unit: str = "s") -> Bar:
    """A bar that a figure must not exceed."""
    digits = 0 if unit == "MB" and value >= 10 else 2
    return Bar(name, f"≤ {limit:g} {unit}", f"{value:.{digits}f} {unit}", value <= limit)


def _main() -> None:
    from nodescope.cli.main import main

    repeats, commands = json.load(sys.stdin)
    answer, found = sys.stdout, {}
    for label, command in commands.items():
        times = []
        for _ in range(repeats + 1):
            with open(os.devnull, "w", encoding="utf-8") as sys.stdout:
                before, cpu = time.perf_counter(), time.process_time()
                code = main(command)
                times.append((time.perf_counter() - before, time.process_time() - cpu))
            if code:
                raise RuntimeError(f"{command}: exit code {code}")
        found[label] = times[1:]
    sys.stdout = answer
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
