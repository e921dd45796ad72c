"""Eight kinds of stale plan, each made stale for real: no step of it is taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from tests.remedy.guarded_node import GuardedNode, read_restarts
from tests.remedy.plans import apply_plan, make_plan, make_step
from tests.systemd_guest import Guest
from tests.waiting import wait_for

from nodescope.errors import StalePlan
from nodescope.records.action import Target
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Fact, PlanStep
from nodescope.remedy.rests_on.facts import changed_facts, read_facts
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.places import Places

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2", "docker.io", "busybox-static"),
    pytest.mark.timeout(600),
]


def _refused(node: NodeAccess, facts: tuple[Fact, ...], *steps: PlanStep) -> tuple[str, ...]:
    """Return why the plan of these facts is refused; no step may begin."""
    plan = make_plan(*steps, facts=facts)
    news: list[object] = []
    with pytest.raises(StalePlan) as raised:
        apply_plan(
            plan, node, report=news.append,
            changed=lambda plan, node: changed_facts(plan.rests_on, node),
        )  # fmt: skip
    assert news == []
    return raised.value.changed


def _make_stale(node: GuardedNode, unit: str, change: Callable[[], None]) -> str:
    """Read the facts of stopping a unit, change something, and return what is found changed."""
    step = make_step("stop_unit", unit)
    facts = read_facts([step], node.access)
    assert changed_facts(facts, node.access) == ()
    change()
    found = "\n".join(_refused(node.access, facts, step))
    assert node.access.manager.read_units([unit])[unit].active == "active"
    return found


def test_restarted(node: GuardedNode) -> None:
    found = _make_stale(
        node, "steady-0.service", partial(node.systemctl, "restart", "steady-0.service")
    )
    assert "the run of steady-0.service was invocation" in found


def test_enabled_again(node: GuardedNode) -> None:
    node.systemctl("disable", "steady-1.service")
    found = _make_stale(
        node, "steady-1.service", partial(node.systemctl, "enable", "steady-1.service")
    )
    assert "the unit file of steady-1.service was disabled, and is enabled" in found
    assert "multi-user.target.wants/steady-1.service" in found


def test_its_unit_file_changed(node: GuardedNode) -> None:
    path = node.root / "etc/systemd/system/steady-2.service"
    changed = path.read_text() + "# changed\n"
    found = _make_stale(node, "steady-2.service", lambda: _write(path, changed))
    assert "the content of /etc/systemd/system/steady-2.service was sha256:" in found


def test_a_drop_in_appeared(node: GuardedNode) -> None:
    path = node.root / "etc/systemd/system/steady-2.service.d/10-nice.conf"
    found = _make_stale(node, "steady-2.service", lambda: _write(path, "[Service]\nNice=5\n"))
    assert "10-nice.conf" in found


def test_its_cgroup_moved(node: GuardedNode) -> None:
    path = node.root / "run/systemd/system/steady-3.service.d/slice.conf"

    def move() -> None:
        _write(path, "[Service]\nSlice=other.slice\n")
        node.systemctl("daemon-reload")
        node.systemctl("restart", "steady-3.service")

    found = _make_stale(node, "steady-3.service", move)
    assert "the control group of steady-3.service was /system.slice/steady-3.service" in found
    assert "and is /other.slice/steady-3.service" in found


def test_its_limit_changed(node: GuardedNode) -> None:
    step = make_step(
        "set_unit_property", "steady-4.service", {"property": "TasksMax", "value": "infinity"}
    )
    node.systemctl("set-property", "--runtime", "steady-4.service", "TasksMax=100")
    facts = read_facts([step], node.access)
    node.systemctl("set-property", "--runtime", "steady-4.service", "TasksMax=200")
    found = _refused(node.access, facts, step)
    assert "steady-4.service TasksMax was 100, and is 200" in found


def test_its_container_was_replaced(node: GuardedNode) -> None:
    node.run("replaced", ["sleep", "3600"])
    target = Target("container", "replaced", runtime="docker")
    step = PlanStep("stop_container", target, "", {}, (), (), "start it again")
    facts = read_facts([step], node.access)
    assert changed_facts(facts, node.access) == ()
    node.docker.ask("DELETE", "/containers/replaced?force=1")
    gone = "\n".join(changed_facts(facts, node.access))
    assert "and is absent (no container replaced)" in gone
    node.run("replaced", ["sleep", "3600"], restart="always")
    found = "\n".join(_refused(node.access, facts, step))
    assert "the id of container docker replaced was" in found
    assert "the restart policy of container docker replaced was no, and is always" in found
    node.docker.ask("DELETE", "/containers/replaced?force=1")


def test_rebooted(node: GuardedNode, tmp_path: Path) -> None:
    """Another boot id, as the kernel shows it in a mount namespace of its own."""
    step = make_step("stop_unit", "steady-5.service")
    facts = read_facts([step], node.access)
    other = tmp_path / "boot_id"
    other.write_text("01234567-89ab-cdef-0123-456789abcdef\n")
    found = _ask_elsewhere(node, facts, other, "/proc/sys/kernel/random/boot_id")
    assert len(found) == 1
    assert "the boot of the node was " in found[0]
    assert found[0].endswith("and is 01234567-89ab-cdef-0123-456789abcdef")


def test_another_node(node: GuardedNode, tmp_path: Path) -> None:
    """A second machine with the same units, the same image and even the same id."""
    step = make_step("stop_unit", "steady-5.service")
    facts = read_facts([step], node.access)
    unit = (node.root / "etc/systemd/system/steady-5.service").read_text()
    other = Guest(tmp_path / "guest", {"steady-5.service": unit}, {})
    access = NodeAccess(Places(systemd_bus=other.bus))
    try:
        found = "\n".join(_refused(access, facts, step))
    finally:
        access.close()
        other.stop()
    assert "the start of systemd was" in found
    assert "the run of steady-5.service was" in found


def test_a_plan_outlives_the_rounds_of_a_loop(node: GuardedNode) -> None:
    step = make_step("stop_unit", "leaky.service")
    target = Target("container", "looping", runtime="docker")
    container = PlanStep("stop_container", target, "", {}, (), (), "start it again")
    facts = read_facts([step, container], node.access)
    assert Fact("unit_run", "leaky.service", "loops") in facts
    assert Fact("container_state", "docker looping", "loops") in facts
    began = read_restarts(node, "leaky.service")
    for later in (began + 1, began + 2, began + 4):
        wait_for(lambda later=later: read_restarts(node, "leaky.service") >= later, "a round")  # type: ignore[misc]
        assert changed_facts(facts, node.access) == ()


def test_a_cgroup_made_anew_is_another() -> None:
    access = NodeAccess(Places())
    path = f"/facts-{os.getpid()}"
    folder = Path(find_memory_hierarchy(access.places).directory(path))
    folder.mkdir()
    try:
        step = make_step("reclaim_cgroup", path, {"file": "memory.reclaim"}, "cgroup")
        facts = read_facts([step], access)
        assert changed_facts(facts, access) == ()
        folder.rmdir()
        assert "is absent" in changed_facts(facts, access)[0]
        folder.mkdir()
        assert f"the cgroup {path} was inode" in changed_facts(facts, access)[0]
    finally:
        folder.rmdir()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _ask_elsewhere(node: GuardedNode, facts: tuple[Fact, ...], file: Path, over: str) -> list[str]:
    """Return what changed for a process that sees another file in a place."""
    code = (
        "import json, sys\n"
        "from nodescope.remedy.rests_on.facts import changed_facts\n"
        "from nodescope.remedy.node_access import NodeAccess\n"
        "from nodescope.remedy.plan import Fact\n"
        "from nodescope.sources.places import Places\n"
        "facts = [Fact(**each) for each in json.loads(sys.argv[2])]\n"
        "node = NodeAccess(Places(systemd_bus=sys.argv[1]))\n"
        "print(json.dumps(changed_facts(facts, node)))\n"
    )
    written = json.dumps([asdict(each) for each in facts])
    script = f'mount --bind "{file}" {over} && exec "$@"'
    asked = [sys.executable, "-c", code, node.guest.bus, written]
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script, "bash", *asked],
        check=True, capture_output=True, text=True, env={**os.environ},
    )  # fmt: skip
    found: list[str] = json.loads(done.stdout)
    return found
