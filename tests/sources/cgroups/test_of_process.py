from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodescope.sources.cgroups.of_process import parse_cgroup_of, read_cgroup_of


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (b"0::/system.slice/a.service\n", "/system.slice/a.service"),  # v2
        (b"9:name=systemd:/\n4:memory:/docker/ab\n0::/\n", "/docker/ab"),  # v1, no systemd
        (  # hybrid: systemd keeps the unified hierarchy in step
            b"9:name=systemd:/system.slice/a.service\n4:memory:/a\n0::/system.slice/a.service/b\n",
            "/system.slice/a.service/b",
        ),
        (b"3:cpuset:/pool\n9:name=systemd:/\n", "/pool"),
        (b"9:name=systemd:/\n0::/\n", "/"),
        (b"0::/a:b\n", "/a:b"),
        (b"0::/gone.scope (deleted)\n", "/gone.scope"),
        (b"", None),
        (b"nonsense\n\xff\n", None),
    ],
)
def test_the_path_that_tells_most(content: bytes, path: str | None) -> None:
    assert parse_cgroup_of(content) == path


def test_a_process_that_has_ended_is_in_none(tmp_path: Path) -> None:
    assert read_cgroup_of(tmp_path, 5) is None
    assert read_cgroup_of(Path("/proc"), os.getpid()) is not None
