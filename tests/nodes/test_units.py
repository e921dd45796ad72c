"""Units of recorded nodes, from their files alone, as systemctl tells them."""

from __future__ import annotations

import pytest
from tests.nodes.recorded import GUEST, HYBRID, Node

from nodescope.sources.systemd.survey import read_survey
from nodescope.sources.systemd.unit_files import UnitFiles


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_states_are_those_that_systemctl_says(node: Node) -> None:
    files = UnitFiles(node.root)
    truth = node.truth["unit_states"]
    assert len(truth) > 10
    found = {name: files.state(name, files.settings(name)) for name in truth}
    assert found == truth | {name: found[name] for name in truth if _is_template(name)}


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
@pytest.mark.xfail(reason="a template of which an instance is enabled is said to be disabled")
def test_states_of_templates_are_those_that_systemctl_says(node: Node) -> None:
    files = UnitFiles(node.root)
    for name in filter(_is_template, node.truth["unit_states"]):
        assert files.state(name, files.settings(name)) == node.truth["unit_states"][name]


def _is_template(name: str) -> bool:
    return "@." in name


@pytest.mark.parametrize("node", [GUEST], indirect=True)
def test_presets_are_those_that_systemctl_says(node: Node) -> None:
    files = UnitFiles(node.root)
    for name, said in node.truth["units"].items():
        assert files.unit(name).preset == said["UnitFilePreset"]


@pytest.mark.parametrize("node", [GUEST], indirect=True)
def test_why_one_did_not_start_is_known_without_a_running_systemd(node: Node) -> None:
    units = read_survey(node.places).units
    skipped = node.truth["units"]["skipped.service"]
    assert (skipped["ActiveState"], skipped["ConditionResult"]) == ("inactive", "no")
    assert (units["skipped.service"].why_not_started or "").startswith("condition:")
    assert units["masked.service"].why_not_started == "masked"
    assert units["by-preset.service"].why_not_started == "disabled"
