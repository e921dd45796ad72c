"""Every scenario, by name."""

from __future__ import annotations

from nodescope.errors import UsageError
from nodescope.lab import holding, leaking, starving
from nodescope.lab.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each for each in (*leaking.SCENARIOS, *starving.SCENARIOS, *holding.SCENARIOS)
}

# Enough to show it, in seconds: for tests and benchmarks.
SMALL = {
    "zombies": 4000, "zombie-agent": 4000, "unwalked-zombies": 1000, "loop-without-leak": 3,
    "page-faults": 4, "huge-pages": 4, "compaction": 4, "busy": 4, "locks": 4, "throttled": 4,
}  # fmt: skip


def find_scenario(name: str) -> Scenario:
    """The scenario of that name."""
    if name not in SCENARIOS:
        raise UsageError(f"no scenario {name!r}", hint=f"there are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
