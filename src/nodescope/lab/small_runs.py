"""Scenarios as tests, benchmarks and bundles run them: no more than it takes to show it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.run import run
from nodescope.lab.scenario import Truth

BEFORE_S, AFTER_S = 3.0, 1.5
TRIES = 3
_STRENGTHS = {
    "zombies": 4000, "zombie-agent": 4000, "loop-beside-leak": 4000, "unwalked-zombies": 1000,
    "loop-without-leak": 3, "page-faults": 4, "huge-pages": 4, "compaction": 4, "busy": 4,
    "locks": 4, "throttled": 4, "memory-limit-loop": 14, "memory-leak": 20, "task-limit": 12,
    "conntrack-full": 16, "disk-full": 22, "io-error": 12, "blocked-writers": 20,
    "periodic-scanner": 24, "cgroups-beside": 4000, "container-loop": 24,
}  # fmt: skip


def small_strength(name: str) -> int:
    """How much of a scenario is enough."""
    return _STRENGTHS.get(name, SCENARIOS[name].strength)


def run_small(name: str, archive: Path, *, healthy: bool = False, seed: int | None = None) -> Truth:
    """Run a scenario once."""
    return run(
        SCENARIOS[name], archive, strength=small_strength(name), healthy=healthy,
        before_s=BEFORE_S, after_s=AFTER_S, seed=seed,
    )  # fmt: skip


def run_until_it_happens(
    name: str,
    archive: Path,
    *,
    healthy: bool = False,
    seed: int | None = None,
    say: Callable[[str], None],
) -> tuple[Truth, int]:
    """Run it again where the machine did not let the lab have its core; and how often it was."""
    attempt = 1
    while True:
        truth = run_small(name, archive, healthy=healthy, seed=seed)
        if truth.happened or attempt == TRIES:
            return truth, attempt
        say(f"{name}: did not come about: the lab had {truth.held:.0%} of its core")
        shutil.rmtree(archive)
        attempt += 1
