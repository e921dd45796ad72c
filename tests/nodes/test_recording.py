"""`tools/record-node`: what it takes, and what it does not tell."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.kernel_files import write
from tests.nodes.recorded import WHOLE, Node

NODES = Path(__file__).parent
TOOL = NODES.parents[1] / "tools/record-node"
ID = "0123456789abcdef" * 2
BOOT = "01234567-89ab-cdef-0123-456789abcdef"


def _record(root: Path, out: Path, *options: str) -> Any:
    command = [sys.executable, str(TOOL), "--root", str(root), *options, str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return json.loads(out.read_text())


def _lines(recording: Any) -> list[tuple[str, ...]]:
    """Everything in a recording, ids by one name: they are others each time."""
    told = [
        (f"{folder}/{name}", text)
        for folder, files in recording["files"].items()
        for name, text in files.items()
        if name != "boot_id"
    ]
    told += recording["links"].items()
    told += [(folder, "") for folder in recording["folders"]]
    return sorted(tuple(re.sub(r"\b[0-9a-f]{32}\b", "ID", each) for each in line) for line in told)


@pytest.mark.parametrize("node", WHOLE, indirect=True)
def test_a_recorded_node_is_recorded_as_it_was(node: Node, tmp_path: Path) -> None:
    recorded = json.loads((NODES / f"{node.name}.json").read_text())
    assert len(_lines(recorded)) > 200
    assert _lines(_record(node.root, tmp_path / "again")) == _lines(recorded)


def test_what_tells_of_the_machine_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root / "proc/self", {"mounts": "/dev/sdx /secret ext4 rw 0 0\nproc /proc proc rw 0 0\n"})
    write(root / "proc/sys/kernel", {"hostname": "secret.example\n", "osrelease": "6.1\n"})
    write(root / "proc/sys/kernel/random", {"boot_id": f"{BOOT}\n"})
    write(root / "proc", {"cmdline": "secret"})
    spec = {"process": {"env": ["TOKEN=secret"]}, "annotations": {"name": "app"}}
    bundle = "run/containerd/io.containerd.runtime.v2.task/k8s.io/app"
    write(root / bundle, {"config.json": json.dumps(spec)})
    write(root / "etc/systemd/system", {"a.service": f"# {ID} on builder\n"})
    write(root / "sys/devices/net/eth0", {"operstate": "up\n", "address": "52:54:00:12:34:56\n"})
    (root / "sys/class/net").mkdir(parents=True)
    (root / "sys/class/net/eth0").symlink_to("../../devices/net/eth0")
    found = _record(root, tmp_path / "out", "--rename", "builder=node")
    text = json.dumps(found)
    for told in ("secret", ID, BOOT, "52:54", "builder", str(tmp_path)):
        assert told not in text
    assert found["files"]["/proc/self"]["mounts"] == "proc /proc proc rw 0 0\n"
    assert '"name": "app"' in found["files"][f"/{bundle}"]["config.json"]
    assert found["files"]["/sys/devices/net/eth0"] == {"operstate": "up\n"}
    assert found["links"] == {"/sys/class/net/eth0": "../../devices/net/eth0"}


def test_every_cgroup_is_taken_and_of_a_file_to_write_its_name(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root / "proc/self", {"mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"})
    write(root / "sys/fs/cgroup", {"cgroup.controllers": "memory\n", "cgroup.stat": "x 1\n"})
    write(root / "sys/fs/cgroup/a/b", {"memory.current": "7\n", "memory.high": "max\n"})
    write(root / "sys/fs/cgroup/a", {"memory.reclaim": ""})
    (root / "sys/fs/cgroup/a/memory.reclaim").chmod(0o200)
    (root / "sys/fs/cgroup/empty").mkdir()
    found = _record(root, tmp_path / "out")
    assert found["files"]["/sys/fs/cgroup/a/b"] == {"memory.current": "7\n"}
    assert found["files"]["/sys/fs/cgroup/a"] == {"memory.reclaim": ""}
    assert found["folders"] == ["/sys/fs/cgroup/empty"]
    only = _record(root, tmp_path / "only", "--only-under", "/a/b")
    assert sorted(only["files"]) == ["/proc/self", "/sys/fs/cgroup", "/sys/fs/cgroup/a/b"]
