"""A bus that hangs, denies or is not there: an error with a hint, and nothing is changed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.remedy.node_state import differences, read_tree
from tests.remedy.plans import apply_plan, make_plan, make_step

from nodescope.errors import RemedyError, SourceDenied
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.unit_orders import ordered, why_no_unit_name
from nodescope.sources.places import Places
from nodescope.wire import dbus

_STEPS = (
    make_step("stop_unit"),
    make_step("disable_unit"),
    make_step("mask_unit"),
    make_step("write_drop_in", arguments={"file": "x.conf", "content": "[Unit]\n"}),
    make_step("set_unit_property", arguments={"property": "MemoryMax", "value": "1"}),
)


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """A socket at which somebody listens, and never answers."""
    path = tmp_path / "run/dbus/system_bus_socket"
    path.parent.mkdir(parents=True)
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "sample.service").symlink_to("/usr/lib/systemd/system/sample.service")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen(64)
        yield tmp_path


@pytest.mark.parametrize("step", _STEPS, ids=lambda step: step.kind)
def test_a_bus_that_hangs_is_an_error_and_nothing_is_changed(
    silent: Path, step: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dbus, "_TIMEOUT_S", 0.2)
    before = read_tree(silent, "etc")
    with pytest.raises(RemedyError, match="does not answer") as failed:
        apply_plan(make_plan(step), NodeAccess(Places(silent)))  # type: ignore[arg-type]
    assert failed.value.hint
    assert differences(before, read_tree(silent, "etc")) == {}


def test_a_denial_by_the_bus_has_a_hint() -> None:
    with pytest.raises(RemedyError, match="systemd denies it") as failed, ordered("stop a.service"):
        raise SourceDenied("unix:path=/x", "SELinux policy denies access")
    assert failed.value.hint
    assert "security module" in failed.value.hint


def test_the_files_of_another_systemd_are_not_looked_for_below_our_root() -> None:
    node = NodeAccess(Places(systemd_bus="unix:path=/somewhere/bus"))
    with pytest.raises(RemedyError, match="is not known"):
        _ = node.unit_root
    private = Places(systemd_bus="unix:path=/proc/7/root/run/systemd/private")
    assert NodeAccess(private).unit_root == Path("/proc/7/root")
    old = Places(systemd_bus="unix:path=/var/run/dbus/system_bus_socket")
    assert NodeAccess(old).unit_root == Path("/")


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("a.service", True), ("a@b.service", True), ("dev-disk-by\\x2duuid.device", True),
        ("-.slice", True), ("a@.service", False), ("a", False), ("a.conf", False),
        (".service", False), ("a b.service", False), ("a\n.service", False), (None, False),
        ("a/b.service", False), ("é.service", False), ("a" * 256 + ".service", False),
    ],
)  # fmt: skip
def test_only_names_that_systemd_has_are_names(name: str | None, valid: bool) -> None:
    assert (why_no_unit_name(name) is None) == valid
