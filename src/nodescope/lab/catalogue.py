"""Every scenario, by name."""

from __future__ import annotations

from nodescope.errors import UsageError
from nodescope.lab import holding, leaking, starving
from nodescope.lab.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {
    each.name: each for each in (*leaking.SCENARIOS, *starving.SCENARIOS, *holding.SCENARIOS)
}


def find_scenario(name: str) -> Scenario:
    """The scenario of that name."""
    if name not in SCENARIOS:
        raise UsageError(f"no scenario {name!r}", hint=f"there are {', '.join(SCENARIOS)}")
    return SCENARIOS[name]
