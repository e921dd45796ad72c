"""Units of recorded nodes, from their files alone, as systemctl tells them."""

from __future__ import annotations

import pytest
from tests.nodes.recorded import GUEST, HYBRID, Node

from nodescope.sources.systemd.survey import read_survey
from nodescope.sources.systemd.unit_files import UnitFiles


def _truth(node: Node, key: str) -> dict[str, str]:
    """What systemctl says of each unit file; not of templates, see below."""
    said: dict[str, dict[str, str]] = node.truth["unit_files"]
    return {name: each[key] for name, each in said.items() if not _is_template(name) and each[key]}


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_states_are_those_that_systemctl_says(node: Node) -> None:
    files = UnitFiles(node.root)
    truth = _truth(node, "state")
    assert len(truth) > 10
    assert {name: files.state(name, files.settings(name)) for name in truth} == truth


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_states_of_templates_are_those_that_systemctl_says(node: Node) -> None:
    files = UnitFiles(node.root)
    for name in filter(_is_template, node.truth["unit_files"]):
        state = files.state(name, files.settings(name))
        assert state == node.truth["unit_files"][name]["state"]


def _is_template(name: str) -> bool:
    return "@." in name


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_presets_are_those_that_systemctl_says(node: Node) -> None:
    files = UnitFiles(node.root)
    truth = _truth(node, "preset")
    assert {name: files.unit(name).preset for name in truth} == truth
    assert (truth.get("fine.service") == "disabled") == (node.name == GUEST)


@pytest.mark.parametrize("node", [GUEST], indirect=True)
def test_why_one_did_not_start_is_known_without_a_running_systemd(node: Node) -> None:
    units = read_survey(node.places).units
    skipped = node.truth["units"]["skipped.service"]
    assert (skipped["ActiveState"], skipped["ConditionResult"]) == ("inactive", "no")
    assert (units["skipped.service"].why_not_started or "").startswith("condition:")
    assert units["masked.service"].why_not_started == "masked"
    assert units["by-preset.service"].why_not_started == "disabled"
