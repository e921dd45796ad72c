"""The guard on a real systemd and a real dockerd: what is needed is refused, and why."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.remedy.guard_table import CONTAINERS, KUBELET, UNITS, Row
from tests.remedy.guarded_node import GuardedNode
from tests.remedy.plans import make_step

from nodescope.records.action import Target
from nodescope.remedy.guard.decision import guard
from nodescope.remedy.plan import PlanStep, Refused
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.places import Places

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2", "docker.io", "busybox-static"),
    pytest.mark.timeout(600),
]


def _stop(row: Row) -> PlanStep:
    if row.name in {each.name for each in UNITS}:
        return make_step("stop_unit", row.name)
    target = Target("container", row.name, runtime="docker")
    return PlanStep("stop_container", target, "a test", {}, (), (), "start it again")


def test_the_table_has_forty_rows() -> None:
    assert len(UNITS) + len(CONTAINERS) + len(KUBELET) >= 40


@pytest.mark.parametrize("row", [*UNITS, *CONTAINERS], ids=lambda row: row.name)
def test_each_is_judged_as_the_table_has_it(node: GuardedNode, row: Row) -> None:
    refused = guard(_stop(row), node.access)
    row.check(refused)


def test_who_knows_better_must_name_it(node: GuardedNode) -> None:
    for step in (make_step("stop_unit", "web.service"), make_step("stop_unit", "cron.service")):
        assert guard(step, node.access, frozenset({str(step.target.name)})) is None
        assert guard(step, node.access, frozenset({"another.service"})) is not None
    # What is never done stays so.
    dbus = make_step("stop_unit", "dbus.service")
    assert guard(dbus, node.access, frozenset({"dbus.service"})) is not None


def test_disabling_and_masking_are_guarded_as_well(node: GuardedNode) -> None:
    for kind in ("disable_unit", "mask_unit"):
        assert isinstance(guard(make_step(kind, "store.service"), node.access), Refused)
        assert guard(make_step(kind, "ecs.service"), node.access) is None


def test_a_step_that_ends_nothing_is_not_guarded(node: GuardedNode) -> None:
    raised = {"property": "MemoryMax", "value": "infinity"}
    assert guard(make_step("set_unit_property", "web.service", raised), node.access) is None


@pytest.mark.parametrize(
    ("prop", "value"), [("CPUQuota", "500000"), ("MemoryMax", str(64 << 20)), ("TasksMax", "3")]
)
def test_what_is_needed_gets_less_only_if_a_person_knows(
    node: GuardedNode, prop: str, value: str
) -> None:
    lowered = {"property": prop, "value": value}
    step = make_step("set_unit_property", "store.service", lowered)
    refused = guard(step, node.access)
    assert refused is not None
    assert "it would get less than it has, and shop.service requires it" in refused.reason
    assert refused.override == "store.service"
    assert guard(step, node.access, frozenset({"store.service"})) is None
    assert guard(make_step("set_unit_property", "idle.service", lowered), node.access) is None
    dropped = {"file": "a.conf", "content": "[Service]\nMemoryMax=1M"}
    assert guard(make_step("write_drop_in", "store.service", dropped), node.access) is not None


def test_what_is_not_there_is_refused_for_good(node: GuardedNode) -> None:
    refused = guard(make_step("stop_unit", "nobody-knows.service"), node.access)
    assert refused is not None
    assert refused.override == ""
    assert "no unit of this name" in refused.reason


def test_ourselves_are_never_stopped(node: GuardedNode) -> None:
    """The unit in whose cgroup the guard runs, whatever its name."""
    cgroup = f"{node.guest.name}/system.slice/idle.service"
    folders = [each.mount / cgroup for each in read_hierarchies(Places())]
    code = (
        "import os, sys\n"
        "for path in sys.argv[2:]: open(path + '/cgroup.procs', 'w').write('0')\n"
        "from nodescope.remedy.guard.decision import guard\n"
        "from nodescope.remedy.node_access import NodeAccess\n"
        "from nodescope.sources.places import Places\n"
        "from tests.remedy.plans import make_step\n"
        "node = NodeAccess(Places(systemd_bus=sys.argv[1]))\n"
        "print(guard(make_step('stop_unit', 'idle.service'), node))\n"
    )
    there = [str(each) for each in folders if each.is_dir()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, node.guest.bus, *there],
        check=True, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert "nodescope itself runs in it" in done.stdout
    assert "override=''" in done.stdout
