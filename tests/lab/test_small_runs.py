from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.lab import small_runs
from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.scenario import Scenario, Truth


@pytest.mark.parametrize("name", SCENARIOS)
def test_small_is_within_the_limits(name: str) -> None:
    scenario = SCENARIOS[name]
    assert scenario.least <= small_runs.small_strength(name) <= scenario.strength


@pytest.mark.parametrize(
    ("held", "attempts"), [((0.99,), 1), ((0.3, 0.99), 2), ((0.3, 0.3, 0.3), 3)]
)
def test_a_run_that_did_not_come_about_is_made_again(
    held: tuple[float, ...], attempts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, shares, said = tmp_path / "archive", iter(held), list[str]()

    def run(scenario: Scenario, path: Path, **_: object) -> Truth:
        path.mkdir()  # a run takes only a new folder
        return Truth(scenario.name, healthy=False, finding=True, held=next(shares))

    monkeypatch.setattr(small_runs, "run", run)
    truth, count = small_runs.run_until_it_happens("zombies", archive, say=said.append)
    assert (truth.held, count) == (held[-1], attempts)
    assert archive.exists()  # that of the last
    assert len(said) == attempts - 1
