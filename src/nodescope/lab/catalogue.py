"""Every scenario, by name."""

from __future__ import annotations

from nodescope.errors import UsageError
from nodescope.lab import (
    beside_scenarios,
    container_scenarios,
    core_scenarios,
    decoy_scenarios,
    limit_scenarios,
    starvation_scenarios,
    storage_scenarios,
    zombie_scenarios,
)
from nodescope.lab.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each
    for each in (
        *zombie_scenarios.SCENARIOS,
        *starvation_scenarios.SCENARIOS,
        *limit_scenarios.SCENARIOS,
        *storage_scenarios.SCENARIOS,
        *core_scenarios.SCENARIOS,
        *beside_scenarios.SCENARIOS,
        *container_scenarios.SCENARIOS,
        *decoy_scenarios.SCENARIOS,
    )
}


def find_scenario(name: str) -> Scenario:
    """The scenario of that name."""
    if name not in SCENARIOS:
        raise UsageError(f"no scenario {name!r}", hint=f"there are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
