"""The whole path on a real incident: plan, apply, prove, undo to the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.remedy.node_state import differences, read_tree

from nodescope.errors import NodescopeError
from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.fix_run import FixCodes, fix_while_it_runs, plan_path
from nodescope.lab.refusals import check
from nodescope.lab.run import run
from nodescope.lab.scenario import ScenarioRun
from nodescope.lab.small_runs import small_strength
from nodescope.lab.unit_stage import get_guest
from nodescope.sources.places import Places
from nodescope.sources.systemd.manager import Manager

pytestmark = [pytest.mark.root, pytest.mark.live, pytest.mark.slow]
FOLDERS = ("etc", "run/systemd/system", "run/systemd/system.control")
PROVEN = FixCodes(plan=0, apply=0, validate=0, undo=0)


class Before:
    """The lab's systemd before and after a fix and its undo."""

    def __init__(self, archive: Path, validate_s: int) -> None:
        self._archive = archive
        self._validate_s = validate_s
        self.codes: FixCodes | None = None
        self.changed: dict[str, tuple[str, str]] = {}
        self.states: tuple[dict[str, str], dict[str, str]] = {}, {}

    def __call__(self, stage: ScenarioRun) -> None:
        guest = get_guest(stage)
        root = Path(f"/proc/{guest.pid}/root")
        tree, states = read_tree(root, *FOLDERS), _file_states(guest.bus)
        self.codes = fix_while_it_runs(stage, self._archive, self._validate_s, print)
        self.changed = differences(tree, read_tree(root, *FOLDERS))
        self.states = states, _file_states(guest.bus)


def _file_states(bus: str) -> dict[str, str]:
    manager = Manager.open(Places(systemd_bus=bus))
    try:
        return manager.list_unit_files()
    finally:
        manager.close()


@pytest.mark.parametrize(("name", "seconds"), [("zombie-agent", 40), ("memory-limit-loop", 40)])
def test_a_fix_is_proven_and_undone_to_the_byte(name: str, seconds: int, tmp_path: Path) -> None:
    try:
        check(SCENARIOS[name], small_strength(name), consent=False)
    except NodescopeError as error:
        pytest.skip(f"the lab would be refused here: {error}")
    archive = tmp_path / "archive"
    fixed = Before(archive, seconds)
    run(SCENARIOS[name], archive, strength=small_strength(name), then=fixed)
    assert fixed.codes == PROVEN
    assert fixed.changed == {}
    assert fixed.states[0] == fixed.states[1]
    plan = json.loads(plan_path(archive).read_text())
    kinds = {step["kind"] for step in plan["steps"]}
    # Zombies that earlier tests left may add steps that free those, too.
    stops = {"stop_unit", "disable_unit", "delete_files"}
    assert kinds >= (stops if name == "zombie-agent" else {"set_unit_property"})
