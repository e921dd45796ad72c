"""Steps on units of a real systemd: applied, undone to the byte, killed anywhere, refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.remedy.node_state import differences, read_guest
from tests.remedy.plans import apply_plan, make_plan, make_step, undo_plan
from tests.systemd_guest import Guest, skip_without_namespaces

from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.sources.places import Places

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2"),
    pytest.mark.timeout(600),
]

_SLEEPS = "[Service]\nExecStart=/bin/sleep infinity\n"
_INSTALL = "[Install]\nWantedBy=multi-user.target\n"
_UNITS = {
    "wanted.service": f"[Unit]\nDescription=in /etc\n{_SLEEPS}{_INSTALL}",
    "looping.service": "[Unit]\nStartLimitIntervalSec=0\n[Service]\n"
    f"ExecStart=/bin/sh -c 'exit 3'\nRestart=always\nRestartSec=300ms\n{_INSTALL}",
    "dependent.service": f"[Unit]\nRequires=wanted.service\nAfter=wanted.service\n{_SLEEPS}",
    "limited.service": f"{_SLEEPS}MemoryMax=64M\nTasksMax=50\n{_INSTALL}",
}
_FILES = {
    "usr/lib/systemd/system/vendor.service": f"{_SLEEPS}{_INSTALL}Alias=seller.service\n",
    "etc/systemd/system/nothing-else.conf": "not a unit\n",
}


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    skip_without_namespaces()
    guest = Guest(tmp_path_factory.mktemp("guest"), _UNITS, _FILES)
    try:
        guest.run("systemctl", "enable", "--now", "vendor.service")
        guest.wait_for(
            lambda: (
                b"active"
                == guest.run(
                    "systemctl", "is-active", "multi-user.target", check=False
                ).stdout.strip()
            ),
            "the guest has booted",
        )
        yield guest
    finally:
        guest.stop()


@pytest.fixture
def node(guest: Guest) -> Iterator[NodeAccess]:
    node = NodeAccess(Places(systemd_bus=guest.bus))
    yield node
    node.close()


_STEPS = {
    "stop": (make_step("stop_unit", "wanted.service"),),
    "stop a loop": (make_step("stop_unit", "looping.service"),),
    "disable": (make_step("disable_unit", "wanted.service"),),
    "disable with an alias": (make_step("disable_unit", "vendor.service"),),
    "mask": (make_step("mask_unit", "vendor.service"),),
    "mask in /etc": (make_step("mask_unit", "wanted.service"),),
    "drop-in": (
        make_step(
            "write_drop_in", "wanted.service",
            {"name": "50-fix.conf", "content": "[Service]\nNice=5\n"},
        ),
    ),
    "memory": (
        make_step(
            "set_unit_property", "limited.service",
            {"property": "MemoryMax", "value": str(128 << 20)},
        ),
    ),
    "quota": (
        make_step(
            "set_unit_property", "limited.service",
            {"property": "CPUQuota", "value": "500000", "runtime": "yes"},
        ),
    ),
    "all": (
        make_step("stop_unit", "wanted.service"),
        make_step("disable_unit", "wanted.service"),
        make_step("mask_unit", "wanted.service"),
        make_step("stop_unit", "vendor.service"),
        make_step("disable_unit", "vendor.service"),
        make_step("mask_unit", "vendor.service"),
    ),
}  # fmt: skip
_NAMES = ("wanted.service", "dependent.service", "limited.service", "vendor.service")


@pytest.mark.parametrize("steps", _STEPS.values(), ids=_STEPS.keys())
def test_every_step_changes_the_node_and_undo_restores_it(
    guest: Guest, node: NodeAccess, steps: tuple[PlanStep, ...]
) -> None:
    guest.run("systemctl", "start", "dependent.service")
    before = read_guest(guest, *_NAMES)
    plan = make_plan(*steps)
    news = apply_plan(plan, node)
    assert [each.outcome for each in news] == ["starting", "applied"] * len(steps)
    applied = read_guest(guest, *_NAMES, "looping.service")
    assert differences(before, applied)
    undone = undo_plan(plan, node)
    assert not undone.left_alone
    assert differences(before, read_guest(guest, *_NAMES)) == {}
