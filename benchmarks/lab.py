"""Every scenario of the lab run for real, and its healthy twin: is the right cause named first,
is nobody else blamed, is a healthy node silent?

A run is right if, where there is something to find, the first chain of the first finding
ends at the true root with the true mechanism; where there is nothing, if there is no
finding, or (decoys that do hold a core) one that names the program itself. `--quick`
runs each once, all at small strength. A run in which the machine did not let the lab have
its core (the kernel's account of the lab's own process says how much) is not counted, but
told, and made again. Confidence is checked against how often it was right.

How it could be fooled, and what is shown against it:

- By scenarios that do not happen: the truth is written by the scenario, not by the
  diagnosis; the held core and its seconds are in the recording.
- By knowing the names: roots are matched, but the rules know no name of the lab.
- By quiet machines only: the load average is shown; other work may run beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.results import Bar, Grid, Options, Result
from nodescope.analysis.window import Extent, Window
from nodescope.archive.reader import Archive
from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Diagnosis
from nodescope.lab.catalogue import SCENARIOS, SMALL
from nodescope.lab.ground import clean
from nodescope.lab.judging import judge
from nodescope.lab.running import run as run_scenario

RUNS = int(os.environ.get("NODESCOPE_BENCH_LAB_RUNS", "20"))
QUIET_RUNS = 10
QUIET_S = 20.0
BEFORE_S, AFTER_S = 3.0, 1.5
TRIES = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    scenario: str
    healthy: bool
    right: bool
    confidence: float | None
    seconds: float
    said: str
    attempts: int = 1


def solve(archive: Path) -> Diagnosis:
    segments = Archive.open(archive).segments()
    extent = Extent(segments)
    return diagnose(segments, Window(extent.from_ns, extent.to_ns))


def run(options: Options) -> Result:
    runs = 1 if options.quick else RUNS
    outcomes: list[Outcome] = []
    for name in SCENARIOS:
        for healthy, count in ((False, runs), (True, max(1, runs // 10))):
            outcomes += [_one(name, healthy=healthy) for _ in range(count)]
    quiet = [_quiet() for _ in range(1 if options.quick else QUIET_RUNS)]
    clean()
    return Result(_bars(outcomes, quiet), (_grid(outcomes), _calibration(outcomes)), (), {
        "wrong": [
            f"{each.scenario}{' (healthy)' if each.healthy else ''}: {each.said}"
            for each in outcomes if not each.right
        ],
        "repeated": sum(each.attempts - 1 for each in outcomes),
        "quiet": quiet,
    })  # fmt: skip


def _one(name: str, *, healthy: bool) -> Outcome:
    attempts, happened = 0, False
    while not happened and attempts < TRIES:
        attempts += 1
        outcome, happened = _try(name, healthy=healthy)
        word = "right" if outcome.right else "WRONG" if happened else "did not come about"
        twin = " (healthy)" if healthy else ""
        print(f"{name}{twin}: {word}: {outcome.said}", flush=True)
    return replace(outcome, attempts=attempts)


def _try(name: str, *, healthy: bool) -> tuple[Outcome, bool]:
    with tempfile.TemporaryDirectory(prefix="nodescope-lab-bench-") as folder:
        archive = Path(folder) / "archive"
        truth = run_scenario(
            SCENARIOS[name], archive, strength=SMALL.get(name), healthy=healthy,
            before_s=BEFORE_S, after_s=AFTER_S,
        )  # fmt: skip
        started = time.monotonic()
        verdict = judge(truth, solve(archive))
        seconds = time.monotonic() - started
    outcome = Outcome(name, healthy, verdict.right, verdict.confidence, seconds, verdict.said)
    return outcome, truth.happened


def _quiet() -> int:
    """A recording of this machine as it is: how many findings."""
    with tempfile.TemporaryDirectory(prefix="nodescope-lab-bench-") as folder:
        archive = Path(folder) / "archive"
        command = [sys.executable, "-m", "nodescope.cli.main", "record", "--archive", str(archive)]
        subprocess.run([*command, "--duration", f"{QUIET_S:.0f}s", "--quiet"], check=True)
        return len(solve(archive).findings)


def _bars(outcomes: list[Outcome], quiet: list[int]) -> tuple[Bar, ...]:
    bars = []
    for name in SCENARIOS:
        mine = [each for each in outcomes if each.scenario == name and not each.healthy]
        right = sum(each.right for each in mine)
        bars.append(
            Bar(f"{name}: right", "≥ 19 of 20", f"{right} of {len(mine)}",
                right >= 0.95 * len(mine))
        )  # fmt: skip
    twins = [each for each in outcomes if each.healthy]
    bars.append(
        Bar("healthy twins: no finding", "all", f"{sum(t.right for t in twins)} of {len(twins)}",
            all(t.right for t in twins))
    )  # fmt: skip
    silent = sum(not count for count in quiet)
    bars.append(
        Bar("quiet recordings: no finding", "all", f"{silent} of {len(quiet)}",
            silent == len(quiet))
    )  # fmt: skip
    return tuple(bars)


def _grid(outcomes: list[Outcome]) -> Grid:
    rows = []
    for name, scenario in SCENARIOS.items():
        mine = [each for each in outcomes if each.scenario == name and not each.healthy]
        twins = [each for each in outcomes if each.scenario == name and each.healthy]
        sure = [each.confidence for each in mine if each.confidence is not None]
        rows.append(
            (
                name,
                "decoy" if scenario.decoy else "incident",
                f"{sum(each.right for each in mine)} of {len(mine)}",
                f"{sum(each.right for each in twins)} of {len(twins)}",
                f"{min(sure):.0%} to {max(sure):.0%}" if sure else "–",
            )
        )
    head = ("scenario", "", "right", "healthy twin silent", "confidence of the first chain")
    return Grid("Live on this machine", head, tuple(rows))


def _calibration(outcomes: list[Outcome]) -> Grid:
    by: dict[str, list[bool]] = defaultdict(list)
    for each in outcomes:
        if each.confidence is not None:
            low = min(int(each.confidence * 10), 9) * 10
            by[f"{low} to {low + 10} %"].append(each.right)
    rows = tuple(
        (bucket, str(len(rights)), f"{sum(rights) / len(rights):.0%}")
        for bucket, rights in sorted(by.items())
    )
    return Grid("How often a confidence was right", ("confidence", "runs", "right"), rows)
