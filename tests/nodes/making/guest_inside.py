"""Inside the v2 guest of guest.sh: make pods, loops and dying cgroups, record, tell the truth.

The truth does not come from the files that our sources read: dying cgroups are those the
kernel's own trace since boot says were removed and not released, what they hold is counted
page by page (`/proc/kpagecgroup`), usage and units are what systemd says of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
TRACE = Path("/sys/kernel/tracing/trace")
VOLUME = Path("/run/emptydir")  # tmpfs, as a kubelet's volume in memory is
EVENT = re.compile(r"cgroup_(mkdir|rmdir|release): root=0 id=(\d+) level=\d+ path=(\S+)")
SHMEM_BITS, ANON_BIT, PAGE = 1 << 14, 1 << 12, 4096
# uid → QoS part of its slice, namespace, pod, {container: options}
PODS: dict[str, tuple[str, str, str, dict[str, list[str]]]] = {
    "0f9d3c1e-72a4-4f0b-9c55-7d1f0a2b3c4d": (
        "burstable-", "shop", "web-7c9", {"app": ["--memory-limit", "67108864"], "sidecar": []},
    ),
    "5b1e7f02-1c3d-4e5f-8a9b-0c1d2e3f4a5b": ("besteffort-", "batch", "worker-0", {"worker": []}),
    "c0ffee00-aaaa-4bbb-8ccc-dddddddddddd": ("", "data", "db-0", {"db": []}),
}  # fmt: skip
RESTARTS = 7  # of a container in the first pod, each of which leaves a file in the volume
LEAVERS = 5  # services that leave two pages in tmpfs
UNITS = (
    "looping.service", "fine.service", "limited.service", "broken.service", "held.service",
    "skipped.service", "by-preset.service", "masked.service", "containerd.service",
)  # fmt: skip
SHOWN = (
    "ControlGroup", "ActiveState", "SubState", "Result", "NRestarts", "ConditionResult",
    "UnitFileState", "UnitFilePreset", "MemoryCurrent", "MemoryMax", "TasksCurrent",
    "CPUUsageNSec",
)  # fmt: skip


def run(*command: str, check: bool = True) -> str:
    print("+", *command, flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise SystemExit(f"{command}: {done.returncode} {done.stderr}")
    return done.stdout


def container_id(pod: str, name: str) -> str:
    return hashlib.sha256(f"{pod}/{name}".encode()).hexdigest()


def start(uid: str, name: str, command: str, *options: str, detached: bool = True) -> str:
    """A container of a pod, by containerd and runc with the systemd driver; its cgroup."""
    qos, namespace, pod, _ = PODS[uid]
    slice_ = f"kubepods-{qos}pod{uid.replace('-', '_')}.slice"
    identifier = container_id(pod, name)
    told = {"container-type": "container", "container-name": name.partition("#")[0],
            "sandbox-name": pod, "sandbox-namespace": namespace, "sandbox-uid": uid}  # fmt: skip
    annotations = [
        word
        for key, value in told.items()
        for word in ("--annotation", f"io.kubernetes.cri.{key}={value}")
    ]
    how = ["--detach"] if detached else ["--rm"]
    run("ctr", "-n", "k8s.io", "run", *how, "--runc-systemd-cgroup",
        "--cgroup", f"{slice_}:cri-containerd:{identifier}", *annotations, *options,
        "--mount", f"type=bind,src={VOLUME},dst=/data,options=rbind:rw",
        "--rootfs", "/opt/rootfs", identifier, "/bin/sh", "-c", command,
        check=detached)  # fmt: skip
    above = "/kubepods.slice" + (f"/kubepods-{qos.rstrip('-')}.slice" if qos else "")
    return f"{above}/{slice_}/cri-containerd-{identifier}.scope"


def make() -> dict[str, dict[str, str]]:
    """Everything that is to be seen; the containers that stay, by cgroup."""
    VOLUME.mkdir()
    live = {}
    for uid, (_, namespace, pod, containers) in PODS.items():
        folder = Path(f"/var/log/pods/{namespace}_{pod}_{uid}")  # as a kubelet lays them out
        for name, options in containers.items():
            (folder / name).mkdir(parents=True)
            (folder / name / "0.log").touch()
            cgroup = start(uid, name, "exec sleep 100000", *options)
            live[cgroup] = {
                "namespace": namespace, "pod": pod, "container": name, "pod_uid": uid,
                "container_id": container_id(pod, name), "runtime": "containerd",
            }  # fmt: skip
    first = next(iter(PODS))
    for number in range(RESTARTS):
        start(first, f"crasher#{number}",
              f"head -c {PAGE} /dev/zero > /data/run-{number}; exit 1", detached=False)  # fmt: skip
    for number in range(LEAVERS):
        run("systemd-run", "--wait", "--quiet", f"--unit=leaver-{number}",
            "/bin/sh", "-c", f"head -c {2 * PAGE} /dev/zero > /dev/shm/left-{number}")  # fmt: skip
    return live


def dying_by_trace() -> tuple[Counter[str], int]:
    """Removed and not released, by the closest ancestor that lives; and how many events."""
    removed: dict[str, str] = {}
    events = 0
    for kind, identifier, path in EVENT.findall(TRACE.read_text()):
        events += 1
        if kind == "rmdir":
            removed[identifier] = path
        elif kind == "release":
            removed.pop(identifier, None)
    return Counter(_living_above(path) for path in removed.values()), events


def _living_above(path: str) -> str:
    while path := path.rpartition("/")[0]:
        if (CGROUPS / path.lstrip("/")).is_dir():
            return path
    return "/"


def held_by_pages(parents: list[str]) -> dict[str, dict[str, int]]:
    """Bytes of tmpfs and of page cache charged to whom /proc/kpagecgroup names."""
    of_inode = {os.stat(CGROUPS / path.lstrip("/")).st_ino: path for path in parents}
    held: dict[str, Counter[str]] = {path: Counter() for path in parents}
    with open("/proc/kpagecgroup", "rb") as owners, open("/proc/kpageflags", "rb") as flags:
        while block := owners.read(1 << 16):
            told = flags.read(len(block))
            numbers = struct.unpack(f"{len(block) // 8}Q", block)
            for owner, flag in zip(numbers, struct.unpack(f"{len(told) // 8}Q", told), strict=True):
                path = of_inode.get(owner)
                if path is not None and not flag & ANON_BIT:
                    held[path]["shmem" if flag & SHMEM_BITS else "file"] += PAGE
    return {path: dict(kinds) for path, kinds in held.items()}


def shown(unit: str) -> dict[str, str]:
    lines = run("systemctl", "show", unit, *(f"--property={name}" for name in SHOWN))
    return dict(line.split("=", 1) for line in lines.splitlines())


def of_recorded(
    said: dict[str, dict[str, str | None]], out: str
) -> dict[str, dict[str, str | None]]:
    """Those whose files were recorded."""
    recording = json.loads(Path(out).read_text())
    found = [(folder, name) for folder, names in recording["files"].items() for name in names]
    found += [tuple(path.rsplit("/", 1)) for path in recording["links"]]
    names = {name for folder, name in found if folder.endswith("/systemd/system")}
    return {name: each for name, each in sorted(said.items()) if name in names}


def usage(live: dict[str, dict[str, str]]) -> dict[str, dict[str, object]]:
    """What cgroups were given and what systemd counts for them; those that are still."""
    found: dict[str, dict[str, object]] = {}
    for unit in ("fine.service", "limited.service", *(path.rpartition("/")[2] for path in live)):
        said = shown(unit)
        limit, limited = said["MemoryMax"], unit == "limited.service"
        found[said["ControlGroup"]] = {
            "cpu_seconds": int(said["CPUUsageNSec"]) / 1e9,
            "memory_bytes": int(said["MemoryCurrent"]),
            "memory_limit_bytes": None if limit == "infinity" else int(limit),
            "tasks": int(said["TasksCurrent"]),
            "oom_kills": kills() if limited else 0,
            "throttled": limited,
        }
    return found


def visible() -> int:
    """Folders with a memory controller; the root has it, but not this file of it."""
    return 1 + sum("memory.current" in names for _, _, names in os.walk(CGROUPS))


def kills() -> int:
    return run("dmesg").count("Memory cgroup out of memory: Killed process")


def unit_files() -> dict[str, dict[str, str | None]]:
    """What systemctl says of every unit file: its state, and what a preset says."""
    said = json.loads(run("systemctl", "list-unit-files", "--output=json"))
    return {each.pop("unit_file"): each for each in said}


def driver(nic: str) -> str | None:
    properties = run("udevadm", "info", "--query=property", f"/sys/class/net/{nic}")
    found = re.search(r"^ID_NET_DRIVER=(.+)$", properties, re.M)
    return found[1] if found else None


def nics() -> dict[str, dict[str, object]]:
    listed = json.loads(run("ip", "-json", "-stats", "link"))
    return {
        each["ifname"]: {
            "driver": driver(each["ifname"]),
            "state": each["operstate"],
            "rx_packets": each["stats64"]["rx"]["packets"],
            "tx_packets": each["stats64"]["tx"]["packets"],
        }
        for each in listed
    }


def settle() -> None:
    """What is only cache goes, and sums come up to date: what is left is pinned."""
    run("sync")
    for _ in range(3):
        Path("/proc/sys/vm/drop_caches").write_text("1")
        time.sleep(2)


def record(tool: str, out: str) -> tuple[Counter[str], int]:
    """Record at a moment at which no cgroup came or went."""
    for _ in range(20):
        before = dying_by_trace()
        count = visible()
        run(sys.executable, tool, out)
        if dying_by_trace() == before and visible() == count:
            return before[0], count
        time.sleep(1)
    raise SystemExit("it never was quiet")


def main() -> None:
    tool, out, truth_path = sys.argv[1:]
    live = make()
    settle()
    dying, count = record(tool, out)
    truth = {
        "version": "v2",
        "kernel": os.uname().release,
        "systemd": run("systemctl", "--version").split()[1],
        "tracked": count + sum(dying.values()),
        "visible": count,
        "dying": sum(dying.values()),
        "dying_by_parent": dict(dying),
        "held_bytes": held_by_pages(list(dying)),
        "made": {"restarts_with_a_page": RESTARTS, "services_with_two_pages": LEAVERS},
        "containers": live,
        "units": {unit: shown(unit) for unit in UNITS},
        "unit_files": of_recorded(unit_files(), out),
        "usage": usage(live),
        "oom_kills": kills(),
        "nics": nics(),
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * PAGE,
    }
    Path(truth_path).write_text(json.dumps(truth, indent=1) + "\n")


if __name__ == "__main__":
    main()
