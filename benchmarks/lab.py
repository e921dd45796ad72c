"""Every scenario of the lab run for real, and its healthy twin: is the right cause named first,
is nobody else blamed, is a healthy node silent?

A run is right if, where there is an incident, the first chain of the first finding ends at the
true owner with the true mechanism, and has the true symptom; if each true condition is listed
with its owner; and where there is nothing, if there is no finding, or (decoys that do hold a
core) one that names the program itself. The units that are well beside a fault must not be
named. An incident of a cgroup that is not the lab's own (its limit was reached: other work on
the machine) is told and not judged. A healthy twin and a quiet recording have neither incident
nor condition. Beside that, and strictly: no run of a decoy names zombies, a unit or a container
as the cause. `--quick` runs each once, all at small strength; what takes half a minute or more
is run five times (NODESCOPE_BENCH_LAB_SLOW_RUNS), the others twenty (NODESCOPE_BENCH_LAB_RUNS).
The number of a run is its seed: names, limits and times are others in each. A run in which the
machine did not let the lab have its core (the kernel's account of the lab's own process says how
much) is not counted, but told, and made again.
All chains that name a cause, also those not ranked first, calibrate
confidence (`nodescope.diagnosis.rules.calibration`): the fit is shown with what it stands on.
A chain that ends at a place (a core, a device that reported the trouble) names no cause.
Recordings are made by `lab_runs.py` and stay, with NODESCOPE_BENCH_LAB_KEEP=FOLDER, where it
says: a run that is interrupted goes on from there, and one made earlier is diagnosed by
the code of now.

How it could be fooled, and what is shown against it:

- By scenarios that do not happen: the truth is written by the scenario, not by the
  diagnosis; the held core and its seconds are in the recording.
- By knowing the names: roots are matched, but the rules know no name of the lab.
- By quiet machines only: the load average is shown; other work may run beside it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.lab_runs import Recording, record_busy, record_quiet, record_scenario
from benchmarks.machine import read_commit
from benchmarks.results import Bar, Grid, Options, Result
from nodescope.diagnosis.rules.calibration import OFFSET, SLOPE, calibrated
from nodescope.lab.calibrate import fit
from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.ground import clean
from nodescope.lab.score import blames_another, judge, list_causes, solve

RUNS = int(os.environ.get("NODESCOPE_BENCH_LAB_RUNS", "20"))
SLOW_RUNS = int(os.environ.get("NODESCOPE_BENCH_LAB_SLOW_RUNS", "5"))
KEEP = os.environ.get("NODESCOPE_BENCH_LAB_KEEP")
QUIET_RUNS = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    scenario: str
    healthy: bool
    right: bool
    said: str
    blames_another: bool
    chains: list[tuple[float, bool]]  # those that name a cause: support, and whether it is true
    attempts: int


def run(options: Options) -> Result:
    runs = 1 if options.quick else RUNS
    with _folder() as folder:
        recordings: list[Recording] = []
        outcomes: list[Outcome] = []
        # In rounds: a benchmark that is ended early has run all of them as often.
        for number, name in itertools.product(range(runs), SCENARIOS):
            for healthy in (False, True):
                if number < _count(name, runs, healthy=healthy):
                    recordings.append(record_scenario(folder, name, number, healthy=healthy))
                    outcomes.append(_judge(recordings[-1]))
        quiet = [
            _count_told(record(folder, number))
            for number in range(1 if options.quick else QUIET_RUNS)
            for record in (record_quiet, record_busy)
        ]
    clean()
    offset, slope = _fit(outcomes)
    grids = (_grid(outcomes, offset, slope), _calibration(outcomes))
    calm = (
        f"Quiet recordings, every second of a busy node: {quiet.count(0)} of {len(quiet)} silent."
    )
    notes = (*_describe(outcomes, offset, slope), calm, _made(recordings))
    return Result(_bars(outcomes, quiet), grids, notes, {
        "wrong": [
            f"{each.scenario}{' (healthy)' if each.healthy else ''}: {each.said}"
            for each in outcomes if not each.right
        ],
        "repeated": sum(each.attempts - 1 for each in outcomes),
        "quiet": quiet,
        "calibration": {"offset": offset, "slope": slope},
        "chains": [[each.scenario, *chain] for each in outcomes for chain in each.chains],
    })  # fmt: skip


def _count(name: str, runs: int, *, healthy: bool) -> int:
    """How often: a twin one time in ten, a scenario that takes half a minute less often."""
    if healthy:
        return max(1, runs // 10)
    return min(runs, SLOW_RUNS) if SCENARIOS[name].slow else runs


def _count_told(archive: Path) -> int:
    """Return how many incidents and conditions were told of a recording."""
    found = solve(archive)
    return len(found.findings) + len(found.conditions)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Where recordings lie while they are needed, or for good."""
    if KEEP:
        yield Path(KEEP)
        return
    with tempfile.TemporaryDirectory(prefix="nodescope-lab-bench-") as folder:
        yield Path(folder)


def _judge(recording: Recording) -> Outcome:
    truth, found = recording.truth, solve(recording.archive)
    verdict = judge(truth, found)
    outcome = Outcome(
        truth.scenario, truth.healthy, verdict.right, verdict.said, blames_another(found),
        list_causes(truth, found), recording.attempts,
    )  # fmt: skip
    word = "right" if verdict.right else "WRONG"
    twin = " (healthy)" if truth.healthy else ""
    print(f"{truth.scenario}{twin}: {word}: {verdict.said}", flush=True)
    return outcome


def _describe(outcomes: list[Outcome], offset: float, slope: float) -> tuple[str, ...]:
    chains = [true for each in outcomes for _, true in each.chains]
    fitted = f"The fit: log-odds of confidence = {offset:.3f} + {slope:.3f} × those of support"
    false = f"Of {len(chains)} chains {chains.count(False)} were false"
    again = f"{sum(each.attempts > 1 for each in outcomes)} runs were made again"
    return (
        f"{fitted}. {false}; runs of one scenario count as one witness.",
        f"{again}, because the machine had not let the lab have its core.",
    )


def _made(recordings: list[Recording]) -> str:
    times = sorted(each.ended for each in recordings)
    commits = ", ".join(dict.fromkeys(each.commit for each in recordings))
    return (
        f"Recorded from {times[0]} to {times[-1]} UTC at {commits}; all of them diagnosed by "
        f"the code of {read_commit()}."
    )


def _bars(outcomes: list[Outcome], quiet: list[int]) -> tuple[Bar, ...]:
    bars = []
    for name in SCENARIOS:
        mine = [each for each in outcomes if each.scenario == name and not each.healthy]
        right = sum(each.right for each in mine)
        bars.append(
            Bar(f"{name}: right", "≥ 19 of 20", f"{right} of {len(mine)}",
                right >= 0.95 * len(mine))
        )  # fmt: skip
    decoys = [each for each in outcomes if SCENARIOS[each.scenario].decoy and not each.healthy]
    blamed = sum(each.blames_another for each in decoys)
    bars.append(
        Bar("decoys: blamed on zombies, a unit or a container", "0", f"{blamed} of {len(decoys)}",
            not blamed)
    )  # fmt: skip
    twins = [each for each in outcomes if each.healthy]
    bars.append(
        Bar("healthy twins: no incident, no condition", "all",
            f"{sum(t.right for t in twins)} of {len(twins)}", all(t.right for t in twins))
    )  # fmt: skip
    bars.append(
        Bar("quiet recordings: no incident, no condition", "all",
            f"{quiet.count(0)} of {len(quiet)}", not any(quiet))
    )  # fmt: skip
    return tuple(bars)


def _grid(outcomes: list[Outcome], offset: float, slope: float) -> Grid:
    rows = []
    for name, scenario in SCENARIOS.items():
        mine = [each for each in outcomes if each.scenario == name and not each.healthy]
        twins = [each for each in outcomes if each.scenario == name and each.healthy]
        sure = [calibrated(each.chains[0][0], offset, slope) for each in mine if each.chains]
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


def _fit(outcomes: list[Outcome]) -> tuple[float, float]:
    told = [(support, true, each.scenario) for each in outcomes for support, true in each.chains]
    if not told:
        return OFFSET, SLOPE
    supports, true, scenarios = zip(*told, strict=True)
    return fit(supports, true, scenarios)


def _calibration(outcomes: list[Outcome]) -> Grid:
    """Chains of any rank by their support: what a fit to the other scenarios says of them."""
    by: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for name in SCENARIOS:
        offset, slope = _fit([each for each in outcomes if each.scenario != name])
        for each in outcomes:
            if each.scenario == name:
                for support, true in each.chains:
                    said = calibrated(support, offset, slope)
                    by[min(int(support * 10), 9) * 10].append((said, true))
    rows = []
    for low, chains in sorted(by.items()):
        sure = sum(said for said, _ in chains) / len(chains)
        were_true = sum(true for _, true in chains) / len(chains)
        rows.append((f"{low} to {low + 10} %", str(len(chains)), f"{sure:.0%}", f"{were_true:.0%}"))
    head = ("support", "chains", "confidence by the other scenarios", "true")
    return Grid("How often a confidence was right", head, tuple(rows))
