from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.sources.places import Places
from nodescope.sources.systemd.control_groups import find_prefix, parse_cgroup_prefix
from nodescope.sources.systemd.locations import unit_root
from nodescope.sources.systemd.unit import slice_path


@pytest.mark.parametrize(
    ("content", "prefix"),
    [
        (b"0::/init.scope\n", ""),
        (b"0::/machines/one/init.scope\n", "/machines/one"),
        (b"9:name=systemd:/m/init.scope\n4:memory:/else\n", "/m"),
        (b"0::/m/system.slice/dbus.service\n", "/m"),
        (b"0::/user.slice/user-0.slice/session-1.scope\n", None),
        (b"", None),
        (b"nonsense", None),
    ],
)
def test_what_stands_before_what_systemd_gave(content: bytes, prefix: str | None) -> None:
    assert parse_cgroup_prefix(content) == prefix


def test_without_a_process_to_see_the_tree_is_searched(tmp_path: Path) -> None:
    tree = tmp_path / "sys/fs/cgroup"
    for path in ("a/init.scope", "b/c/init.scope", "b/c/system.slice/x.service"):
        (tree / path).mkdir(parents=True)
    (tree / "cgroup.procs").touch()
    assert find_prefix(Places(root=tmp_path), None, ["/system.slice/x.service"]) == "/b/c"
    assert find_prefix(Places(root=tmp_path), None, ["/system.slice/y.service"]) is None


def test_slices_lie_in_slices() -> None:
    assert slice_path("system.slice") == "/system.slice"
    assert slice_path("a-b-c.slice") == "/a.slice/a-b.slice/a-b-c.slice"
    assert slice_path("-.slice") == ""


@pytest.mark.parametrize(
    ("places", "root"),
    [
        (Places(), "/"),
        (Places(root=Path("/mnt")), "/mnt"),
        (Places(systemd_bus="unix:path=/host/run/dbus/system_bus_socket"), "/host"),
        (Places(systemd_bus="unix:path=/run/dbus/system_bus_socket"), "/"),
        (Places(journal=Path("/host/var/log/journal")), "/host"),
        (Places(journal=Path("/host/run/log/journal/0123")), "/host"),
        (Places(systemd_bus="unix:abstract=x"), None),
        (Places(root=Path("/mnt"), systemd_bus="unix:abstract=x"), "/mnt"),
    ],
)
def test_whose_unit_files_belong_to_a_systemd(places: Places, root: str | None) -> None:
    assert unit_root(places) == (None if root is None else Path(root))
