"""Steps on units of a real systemd: applied, undone to the byte, killed anywhere, refused."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from tests.remedy.killed import KillAt, die, run_killed
from tests.remedy.node_state import differences, read_guest, read_tree
from tests.remedy.plans import apply_plan, make_plan, make_step, undo_plan
from tests.systemd_guest import Guest, skip_without_namespaces

from nodescope.errors import RemedyError
from nodescope.remedy.actions import unit_file_step
from nodescope.remedy.culprits import find_culprit
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Plan, PlanStep, StepName
from nodescope.remedy.unit_orders import read_unit_state
from nodescope.sources.places import Places

pytestmark = [
    pytest.mark.root,
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.slow,
    pytest.mark.debian("systemd", "dbus", "iproute2"),
    pytest.mark.timeout(600),
]

_OFTEN = "[Unit]\nStartLimitIntervalSec=0\n"  # tests start them more often than people do
_SLEEPS = "[Service]\nExecStart=/bin/sleep infinity\n"
_INSTALL = "[Install]\nWantedBy=multi-user.target\n"
_UNITS = {
    "wanted.service": f"{_OFTEN}Description=in /etc\n{_SLEEPS}{_INSTALL}",
    "looping.service": f"{_OFTEN}[Service]\n"
    f"ExecStart=/bin/sh -c 'exit 3'\nRestart=always\nRestartSec=300ms\n{_INSTALL}",
    "dependent.service": f"{_OFTEN}Requires=wanted.service\nAfter=wanted.service\n{_SLEEPS}",
    "triggered.service": _OFTEN + _SLEEPS,
    "triggered.socket": "[Socket]\nListenStream=/run/triggered.sock\n",
    "limited.service": f"{_OFTEN}{_SLEEPS}MemoryMax=64M\nTasksMax=50\n{_INSTALL}",
}
_FILES = {
    # As systemd has it by default: five starts within ten seconds.
    "etc/systemd/system/seldom.service": _SLEEPS,
    "usr/lib/systemd/system/vendor.service": f"{_OFTEN}{_SLEEPS}{_INSTALL}Alias=seller.service\n",
    "etc/systemd/system/nothing-else.conf": "not a unit\n",
}


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    skip_without_namespaces()
    guest = Guest(tmp_path_factory.mktemp("guest"), _UNITS, _FILES)
    try:
        guest.run("systemctl", "enable", "--now", "vendor.service")
        guest.wait_for(
            lambda: _shown(guest, "multi-user.target", "ActiveState") == "active",
            "the guest has booted",
        )
        yield guest
    finally:
        guest.stop()


def _shown(guest: Guest, unit: str, name: str) -> str:
    shown = guest.run("systemctl", "show", f"--property={name}", "--value", "--", unit)
    return shown.stdout.decode().strip()


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
            {"file": "50-fix.conf", "content": "[Unit]\nDescription=fixed\n"},
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


def test_a_raised_limit_is_the_kernel_s_and_comes_back(guest: Guest, node: NodeAccess) -> None:
    def limit() -> int:
        group = _shown(guest, "limited.service", "ControlGroup")
        inside = guest.root / "sys/fs/cgroup"
        v1, v2 = inside / "memory" / group[1:], inside / group[1:]
        file = v1 / "memory.limit_in_bytes" if v1.exists() else v2 / "memory.max"
        return int(file.read_text())

    plan = make_plan(*_STEPS["memory"], made_ns=2)
    assert limit() == 64 << 20
    apply_plan(plan, node)
    assert limit() == 128 << 20
    undo_plan(plan, node)
    assert limit() == 64 << 20


# -- kill -9 ---------------------------------------------------------------------------


def _light(guest: Guest, node: NodeAccess) -> dict[str, str]:
    """Return what the killed steps may change, without asking by programs."""
    found = read_tree(guest.root, "etc/systemd", "run/systemd/system", "run/systemd/system.control")
    for unit in _NAMES:
        state = read_unit_state(node, unit)
        value = node.manager.read_property(unit, "Service", "MemoryMax")
        called = node.manager.read_property(unit, "Unit", "Description")
        found[unit] = f"{state.load} {state.active} {state.sub} {value} {called}"
    return found


def _go_until(go: Callable[..., object], plan: Plan, guest: Guest, at: int) -> None:
    go(plan, _other(guest), around=KillAt(at))


def _other(guest: Guest) -> NodeAccess:
    return NodeAccess(Places(systemd_bus=guest.bus))


@pytest.mark.parametrize(
    "kind", ["stop", "disable with an alias", "mask", "mask in /etc", "drop-in", "memory"]
)
def test_a_killed_run_is_resumed_or_undone_cleanly(
    guest: Guest, node: NodeAccess, kind: str
) -> None:
    """The process dies before and after each of its journal writes, of apply and of undo."""
    guest.run("systemctl", "start", "dependent.service")
    before = _light(guest, node)
    for at in range(4):
        plan = make_plan(*_STEPS[kind], made_ns=100 + at)
        assert run_killed(partial(_go_until, apply_plan, plan, guest, at))
        undo_plan(plan, node)
        assert differences(before, _light(guest, node)) == {}, f"undone after a kill at {at}"
        assert run_killed(partial(_go_until, apply_plan, plan, guest, at))
        apply_plan(plan, node)
        applied = _light(guest, node)
        assert differences(before, applied)
        assert apply_plan(plan, node) == []
        assert run_killed(partial(_go_until, undo_plan, plan, guest, at))
        assert not undo_plan(plan, node).left_alone
        assert differences(before, _light(guest, node)) == {}, f"undo was killed at {at}"


def test_a_run_killed_before_systemd_has_read_the_files_reloads_later(
    guest: Guest, node: NodeAccess
) -> None:
    before = _light(guest, node)
    plan = make_plan(*_STEPS["drop-in"], made_ns=200)

    def apply_until_reload() -> None:
        pytest.MonkeyPatch().setattr(unit_file_step, "reload_units", lambda _node: die())
        apply_plan(plan, _other(guest))

    assert run_killed(apply_until_reload)
    assert node.manager.read_property("wanted.service", "Unit", "Description") == "in /etc"
    apply_plan(plan, node)
    assert node.manager.read_property("wanted.service", "Unit", "Description") == "fixed"
    undo_plan(plan, node)
    assert differences(before, _light(guest, node)) == {}


# -- others ----------------------------------------------------------------------------


def test_what_others_changed_since_is_left_alone(guest: Guest, node: NodeAccess) -> None:
    before = _light(guest, node)
    plan = make_plan(*_STEPS["all"], made_ns=300)
    apply_plan(plan, node)
    wants = guest.root / "etc/systemd/system/multi-user.target.wants/wanted.service"
    wants.symlink_to("/etc/systemd/system/wanted.service")  # somebody enabled it again
    theirs = guest.root / "etc/systemd/system/wanted.service.d/theirs.conf"
    theirs.write_text("[Unit]\nDescription=theirs\n")
    undone = undo_plan(plan, node)
    said = "\n".join(undone.left_alone)
    assert "multi-user.target.wants/wanted.service: somebody changed it since" in said
    assert "wanted.service.d: somebody put theirs.conf there" in said
    assert wants.is_symlink()
    assert theirs.exists()
    theirs.unlink()
    theirs.parent.rmdir()
    guest.run("systemctl", "daemon-reload")
    assert _shown(guest, "wanted.service", "ActiveState") == "active"
    assert _light(guest, node).keys() == before.keys()


def test_a_unit_that_is_turned_on_again_is_stopped_twice_and_the_doer_is_named(
    guest: Guest, node: NodeAccess
) -> None:
    plan = make_plan(make_step("stop_unit", "vendor.service"), made_ns=400)
    named = NodeAccess(Places(systemd_bus=guest.bus, journal=guest.journal))

    def culprit(step: PlanStep, since_ns: int) -> str:
        return find_culprit(step, since_ns, named)

    apply_plan(plan, node, culprit=culprit)
    guest.run("systemctl", "start", "vendor.service")
    apply_plan(plan, node, culprit=culprit)
    assert _shown(guest, "vendor.service", "ActiveState") == "inactive"
    # As Ansible logs what its module was told to do.
    guest.run("logger", "--tag", "ansible-systemd", "Invoked with name=vendor state=started")
    guest.run("systemctl", "start", "vendor.service")
    guest.run("journalctl", "--sync")
    with pytest.raises(RemedyError, match="after each of 2 tries; by: ansible-systemd"):
        apply_plan(plan, node, culprit=culprit)
    assert _shown(guest, "vendor.service", "ActiveState") == "active"
    named.close()


def test_a_socket_that_starts_a_unit_again_is_named(guest: Guest, node: NodeAccess) -> None:
    step = make_step("stop_unit", "triggered.service")
    guest.run("systemctl", "start", "triggered.socket", "triggered.service")
    since_ns = time.time_ns()
    guest.run("systemctl", "restart", "triggered.service")
    assert find_culprit(step, since_ns, node) == "triggered.socket, which starts it"


def test_undo_starts_a_unit_that_was_started_too_often(guest: Guest, node: NodeAccess) -> None:
    guest.run("systemctl", "start", "seldom.service")
    for number in range(7):
        plan = make_plan(make_step("stop_unit", "seldom.service"), made_ns=450 + number)
        apply_plan(plan, node)
        assert not undo_plan(plan, node).left_alone
    assert _shown(guest, "seldom.service", "ActiveState") == "active"


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["", "../../passwd.service", "a b.service", "a\nb.service", "a/b.service", "template@.service",
     "none.service", "wanted", "\u202ewanted.service", "-.service;reboot.service"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["stop_unit", "disable_unit", "mask_unit", "write_drop_in"])
def test_a_hostile_name_is_refused_and_changes_nothing(
    guest: Guest, node: NodeAccess, kind: StepName, name: str
) -> None:
    before = read_tree(guest.root, "etc/systemd", "run/systemd/system")
    arguments = {"file": "x.conf", "content": "[Unit]\n"} if kind == "write_drop_in" else {}
    with pytest.raises(RemedyError):
        apply_plan(make_plan(make_step(kind, name, arguments), made_ns=500), node)
    assert differences(before, read_tree(guest.root, "etc/systemd", "run/systemd/system")) == {}


@pytest.mark.parametrize("file", ["../x.conf", "x", ".x.conf", "a/b.conf", "a\nb.conf", ""])
def test_a_hostile_drop_in_is_refused(guest: Guest, node: NodeAccess, file: str) -> None:
    step = make_step("write_drop_in", "wanted.service", {"file": file, "content": "[Unit]\n"})
    with pytest.raises(RemedyError, match="not the name of a drop-in"):
        apply_plan(make_plan(step, made_ns=501), node)


def test_a_file_that_is_not_ours_is_not_replaced(guest: Guest, node: NodeAccess) -> None:
    folder = guest.root / "etc/systemd/system/limited.service.d"
    folder.mkdir()
    (folder / "x.conf").write_text("[Unit]\nDescription=theirs\n")
    arguments = {"file": "x.conf", "content": "[Unit]\n"}
    try:
        with pytest.raises(RemedyError, match="not ours to replace"):
            apply_plan(make_plan(make_step("write_drop_in", "limited.service", arguments)), node)
        assert "theirs" in (folder / "x.conf").read_text()
    finally:
        shutil.rmtree(folder)


def test_a_symlinked_drop_in_folder_is_refused(guest: Guest, node: NodeAccess) -> None:
    elsewhere = guest.root / "tmp/elsewhere"
    elsewhere.mkdir()
    link = guest.root / "etc/systemd/system/limited.service.d"
    link.symlink_to("/tmp/elsewhere")
    arguments = {"file": "x.conf", "content": "[Unit]\n"}
    try:
        with pytest.raises(RemedyError):
            apply_plan(make_plan(make_step("write_drop_in", "limited.service", arguments)), node)
        assert list(elsewhere.iterdir()) == []
    finally:
        link.unlink()


def test_a_read_only_etc_is_reported_and_nothing_is_half_done(
    guest: Guest, node: NodeAccess
) -> None:
    before = _light(guest, node)
    guest.run("mount", "--bind", "/etc", "/etc")
    guest.run("mount", "-o", "remount,bind,ro", "/etc")
    plans = [make_plan(*_STEPS[each], made_ns=600) for each in ("disable", "mask", "drop-in")]
    try:
        for plan in plans:
            with pytest.raises(RemedyError) as failed:
                apply_plan(plan, node)
            assert failed.value.hint is not None
            assert "read-only" in failed.value.hint
    finally:
        guest.run("umount", "/etc")
    for plan in plans:
        assert not undo_plan(plan, node).left_alone
    assert differences(before, _light(guest, node)) == {}


def test_a_full_disk_is_noticed_before_the_node_is_changed(guest: Guest, node: NodeAccess) -> None:
    before = _light(guest, node)
    place = guest.root / "var/lib/nodescope"
    place.mkdir(parents=True, exist_ok=True)
    guest.run("mount", "-t", "tmpfs", "-o", "size=32k", "small", "/var/lib/nodescope")
    plan = make_plan(*_STEPS["all"], made_ns=700)
    try:
        guest.run("sh", "-c", "cat /dev/zero > /var/lib/nodescope/filler", check=False)
        with pytest.raises(RemedyError):
            apply_plan(plan, node)
        assert differences(before, _light(guest, node)) == {}
        (place / "filler").unlink()
        apply_plan(plan, node)
        undo_plan(plan, node)
        assert differences(before, _light(guest, node)) == {}
    finally:
        guest.run("umount", "/var/lib/nodescope")


def test_without_a_bus_nothing_is_touched(guest: Guest) -> None:
    before = read_tree(guest.root, "etc/systemd")
    node = NodeAccess(Places(guest.root, systemd_bus=f"unix:path={guest.root}/run/no-bus"))
    for kind in ("stop", "disable", "mask", "drop-in", "memory"):
        with pytest.raises(RemedyError) as failed:
            apply_plan(make_plan(*_STEPS[kind], made_ns=800), node)
        assert failed.value.hint
    assert differences(before, read_tree(guest.root, "etc/systemd")) == {}
