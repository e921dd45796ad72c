"""Nodes' files with cgroups in them, written from what real nodes hold.

`hybrid`: this project's own machine (kernel 6.18, Debian 12), v1 controllers beside
an empty unified hierarchy. `unified`: the formats of a v2 host with systemd.
`kubelet`: either one with pods in it, by one of the kubelet's two drivers.
"""

from __future__ import annotations

from pathlib import Path

UID = "0f9d3c1e-72a4-4f0b-9c55-7d1f0a2b3c4d"
CONTAINER = "3f2a" * 16
UNLIMITED = "9223372036854771712\n"

HYBRID_MOUNTS = """\
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0
cgroup /sys/fs/cgroup/cpuacct cgroup rw,relatime,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,relatime,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0
"""
UNIFIED_MOUNTS = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0\n"

V1_FILES = {
    "cpuacct": {
        "cpuacct.usage": "48211334559\n",
        "cpuacct.stat": "user 3012\nsystem 1790\n",
    },
    "cpu": {
        "cpu.stat": "nr_periods 100\nnr_throttled 7\nthrottled_time 93000000\n"
        "nr_bursts 0\nburst_time 0\n",
    },
    "memory": {
        "memory.usage_in_bytes": "20877312\n",
        "memory.limit_in_bytes": UNLIMITED,
        "memory.failcnt": "0\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    },
    "pids": {"pids.current": "12\n"},
}
PSI = (
    "some avg10=0.00 avg60=0.12 avg300=0.05 total={some}\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total={full}\n"
)
V2_FILES = {
    "cpu.stat": "usage_usec 48211334\nuser_usec 30120000\nsystem_usec 18091334\n"
    "nice_usec 0\ncore_sched.force_idle_usec 0\nnr_periods 100\nnr_throttled 7\n"
    "throttled_usec 93000\nnr_bursts 0\nburst_usec 0\n",
    "memory.current": "20877312\n",
    "memory.max": "max\n",
    "memory.events": "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 0\n",
    "pids.current": "12\n",
    "cpu.pressure": PSI.format(some=900, full=400),
    "memory.pressure": PSI.format(some=90, full=40),
    "io.pressure": PSI.format(some=9, full=4),
}

SYSTEMD_POD = (
    f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID.replace('-', '_')}.slice"
)
CGROUPFS_POD = f"/kubepods/burstable/pod{UID}"
KUBELET = {
    "systemd": f"{SYSTEMD_POD}/cri-containerd-{CONTAINER}.scope",
    "cgroupfs": f"{CGROUPFS_POD}/{CONTAINER}",
}


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)


def _mounts(root: Path, mounts: str) -> None:
    write(root / "proc/self", {"mounts": mounts})


def add_v1(root: Path, path: str, *controllers: str) -> None:
    """A cgroup, and those above it, in these hierarchies (default: all that account)."""
    for controller in controllers or tuple(V1_FILES):
        for each in _lineage(path):
            mount = root / "sys/fs/cgroup" / controller
            write(mount / each.lstrip("/"), V1_FILES[controller])


def add_v2(root: Path, path: str) -> None:
    """A cgroup, and those above it but the root, which has fewer files."""
    for each in _lineage(path):
        if each != "/":
            write(root / "sys/fs/cgroup" / each.lstrip("/"), V2_FILES)


def _lineage(path: str) -> list[str]:
    parts = path.strip("/").split("/") if path != "/" else []
    return ["/", *("/" + "/".join(parts[:at]) for at in range(1, len(parts) + 1))]


def hybrid(root: Path, *paths: str) -> Path:
    """A v1 node with an empty unified hierarchy beside."""
    _mounts(root, HYBRID_MOUNTS)
    for name in ("systemd", "unified"):
        (root / "sys/fs/cgroup" / name).mkdir(parents=True)
    write(root / "sys/fs/cgroup/unified", {"cgroup.controllers": "\n"})
    for path in paths or ("/",):
        add_v1(root, path)
    return root


def unified(root: Path, *paths: str) -> Path:
    """A v2 node."""
    _mounts(root, UNIFIED_MOUNTS)
    write(root / "sys/fs/cgroup", {"cgroup.controllers": "cpuset cpu io memory pids\n"})
    for path in paths:
        add_v2(root, path)
    return root
