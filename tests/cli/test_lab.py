from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import Nodescope

from nodescope.lab import ground, refusals, synthetic
from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.in_service import CONSENT
from nodescope.lab.synthetic import Shape


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def test_the_scenarios_are_listed(nodescope: Nodescope) -> None:
    result = nodescope("lab", "list")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()] == list(SCENARIOS)


def test_the_scenarios_are_listed_for_scripts(nodescope: Nodescope) -> None:
    result = nodescope("lab", "list", "--json")
    assert result.code == 0
    listed = {each["name"]: each for each in json.loads(result.out)}
    assert listed["starved-nic"]["least"] <= listed["starved-nic"]["strength"]
    assert listed["busy"]["decoy"]
    assert not listed["zombies"]["decoy"]
    assert listed["zombies"]["unit"] == "zombies"


def test_an_unknown_scenario_is_refused(nodescope: Nodescope, tmp_path: Path) -> None:
    result = nodescope("lab", "run", "nonsense", "--record", tmp_path / "archive")
    assert result.code == 2
    assert "no scenario 'nonsense'" in result.err
    assert "zombie-agent" in result.err


def test_a_run_without_a_scenario_or_a_folder_is_refused(nodescope: Nodescope) -> None:
    result = nodescope("lab", "run", "zombies")
    assert result.code == 2
    assert "--record DIR" in result.err


@pytest.mark.usefixtures("root")
def test_a_strength_beyond_the_most_is_refused(nodescope: Nodescope, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    result = nodescope("lab", "run", "zombies", "--strength", "50001", "--record", archive)
    assert result.code == 2
    assert "1 to 50,000" in result.err
    assert not archive.exists()


@pytest.mark.usefixtures("root")
def test_a_machine_that_serves_somebody_is_left_alone(
    nodescope: Nodescope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "find_signs", lambda places: ["kubelet runs on it"])
    monkeypatch.delenv(CONSENT, raising=False)
    archive = tmp_path / "archive"
    result = nodescope("lab", "run", "zombies", "--record", archive)
    assert result.code == 2
    assert "serves somebody: kubelet runs on it" in result.err
    assert "--yes" in result.err
    assert not archive.exists()


def test_clean_says_by_name_that_it_needs_root(
    nodescope: Nodescope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground, "LEDGERS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    result = nodescope("lab", "clean")
    assert result.code == 2
    assert result.out == ""
    assert f"({tmp_path}) only root may see" in result.err
    assert "hint: `sudo nodescope lab clean`" in result.err


def test_the_synthetic_story_has_its_truth_beside_it(
    nodescope: Nodescope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = Shape().small()
    monkeypatch.setattr(synthetic, "Shape", lambda: shape)
    archive = tmp_path / "story"
    result = nodescope("lab", "synthetic", "--record", archive)
    assert result.code == 0
    truth = json.loads((tmp_path / "story.truth.json").read_text())
    assert truth["roots"] == ["ecs.service"]
    assert truth["cpu"] == shape.held_core
    assert "script" in truth["simulated"][0]
    again = nodescope("lab", "synthetic", "--record", archive)
    assert again.code == 2
    assert "is not empty" in again.err
