from __future__ import annotations

import os
from pathlib import Path

from nodescope.sources.network.namespaces import NetworkNamespaces, parse_cgroup_path


def _process(proc: Path, pid: str, namespace: int) -> None:
    folder = proc / pid / "ns"
    folder.mkdir(parents=True)
    os.symlink(f"net:[{namespace}]", folder / "net")


def test_the_oldest_process_stands_for_a_namespace(tmp_path: Path) -> None:
    _process(tmp_path, "self", 1)
    for pid, namespace in ((1, 1), (40, 2), (50, 2), (60, 3)):
        _process(tmp_path, str(pid), namespace)
    (tmp_path / "70").mkdir()  # a thread of the kernel, or closed to us
    namespaces = NetworkNamespaces(tmp_path)
    assert namespaces.find() == {"net:[2]": 40, "net:[3]": 60}
    (tmp_path / "40/ns/net").unlink()
    (tmp_path / "40/ns").rmdir()
    (tmp_path / "40").rmdir()
    assert namespaces.find() == {"net:[2]": 50, "net:[3]": 60}


def test_the_cgroup_is_that_of_the_cpu_time() -> None:
    v1 = b"5:memory:/m\n4:cpu,cpuacct:/pods/a\n1:name=systemd:/s\n0::/\n"
    assert parse_cgroup_path(v1) == "/pods/a"
    assert parse_cgroup_path(b"0::/system.slice/a.service\n") == "/system.slice/a.service"
    assert parse_cgroup_path(b"") is None
