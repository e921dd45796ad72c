"""Record this machine (memory on v1 beside an empty v2), as root, with nothing else going on:

    python -m tests.nodes.making.this_machine

Two recordings into tests/nodes: `hybrid-v1`, with a live cgroup at its limits, cgroups that
died with a page each in tmpfs and others with page cache; and `kubelet-cgroupfs-v1`, pods by
the cgroupfs driver of a real containerd and runc, one of whose containers crashed again
and again. How many were made, what they hold and what runs is known from making them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.container_daemons import ContainerHost, start_host, wait_for_first_process
from tests.sources.memory_cgroups.making import Nursery, nursery
from tests.waiting import wait_for

NODES = Path(__file__).parents[1]
TOOL = NODES.parents[1] / "tools/record-node"
CGROUPS = Path("/sys/fs/cgroup")
MEMORY = CGROUPS / "memory"
CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")
Truth = dict[str, Any]
LIMIT, HELD, PAGE = 64 << 20, 12 << 20, 4096
# uid → level of its QoS, namespace, pod, {container: options}
PODS: dict[str, tuple[str, str, str, dict[str, list[str]]]] = {
    "9a7c2d10-3b4e-4c5d-9e6f-1a2b3c4d5e6f": (
        "burstable/", "shop", "cart-0", {"app": ["--memory-limit", str(LIMIT)], "proxy": []},
    ),
    "1d2c3b4a-5e6f-4a7b-8c9d-0e1f2a3b4c5d": ("besteffort/", "batch", "report-1", {"run": []}),
    "77777777-8888-4999-aaaa-bbbbbbbbbbbb": ("", "data", "cache-0", {"store": []}),
}  # fmt: skip
RESTARTS = 9
RELEASE = re.match(r"[\d.]+", os.uname().release)[0]  # type: ignore[index]
OWN_NAMES = {"process_api": "sessions", os.uname().release: RELEASE}  # of this machine's makers
# Joins, is killed once for what it takes (a child of it), runs into its quota, then is still.
BUSY = f"""
import os, subprocess, sys, time
for path in sys.argv[1:]:
    open(path, "w").write(str(os.getpid()))
held = bytearray({HELD})
greedy = "held = bytearray({2 * LIMIT})"
killed = subprocess.run([sys.executable, "-c", greedy]).returncode
while time.process_time() < 0.5:
    sum(range(1000))
print(killed, flush=True)
time.sleep(10_000)
"""


def tracked() -> int:
    rows = Path("/proc/cgroups").read_text()
    found = re.search(r"^memory\t\d+\t(\d+)", rows, re.M)
    assert found
    return int(found[1])


def folders() -> list[str]:
    return sorted(folder for folder, _, _ in os.walk(MEMORY))


def record(name: str, renames: dict[str, str], host: ContainerHost | None = None) -> Truth:
    """Record while no cgroup comes or goes, here or inside a host; how many there were."""
    time.sleep(3)  # the kernel's sums lag
    for _ in range(100):
        before = tracked(), folders()
        command = ["nsenter", "-t", str(host.pid), "-a", "--wd=/"] if host else []
        command += [os.path.realpath(sys.executable), "-", "/dev/stdout"]
        for old, new in (OWN_NAMES | renames).items():
            command += ["--rename", f"{old}={new}"]
        with TOOL.open() as tool, (NODES / f"{name}.json").open("w") as out:
            subprocess.run(command, check=True, stdin=tool, stdout=out, cwd="/")
        if (tracked(), folders()) == before:
            count, visible = before[0], len(before[1])
            return {"tracked": count, "visible": visible, "dying": count - visible}
    raise SystemExit("it never was quiet")


def write(name: str, truth: Truth) -> None:
    general = {
        "version": "hybrid",
        "kernel": RELEASE,
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * PAGE,
    }
    (NODES / f"{name}.truth.json").write_text(json.dumps(general | truth, indent=1) + "\n")


def nics() -> Truth:
    """What netlink says; the driver is the one that has the device, as its bus lists it."""
    command = ["ip", "-json", "-stats", "-details", "link"]
    said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return {
        each["ifname"]: {
            "driver": _driver(each.get("parentbus"), each.get("parentdev")),
            "state": each["operstate"],
            "rx_packets": each["stats64"]["rx"]["packets"],
            "tx_packets": each["stats64"]["tx"]["packets"],
        }
        for each in said
    }


def _driver(bus: str | None, device: str | None) -> str | None:
    found = list(Path(f"/sys/bus/{bus}/drivers").glob(f"*/{device}")) if device else []
    return found[0].parent.name if found else None


def unit_files() -> Truth:
    """What systemctl says of unit files, of which there are some here without a systemd."""
    command = ["systemctl", "--root=/", "list-unit-files", "--output=json"]
    said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    recorded = json.loads((NODES / "hybrid-v1.json").read_text())["files"]
    folders = [folder for folder in recorded if folder.endswith("/systemd/system")]
    names = {name for folder in folders for name in recorded[folder]}
    return {each.pop("unit_file"): each for each in said if each["unit_file"] in names}


@contextlib.contextmanager
def busy(path: str) -> Iterator[subprocess.Popen[str]]:
    """One that lives in a cgroup with limits, in every hierarchy that accounts."""
    made = [CGROUPS / controller / path.lstrip("/") for controller in CONTROLLERS]
    for folder in made:
        folder.mkdir(parents=True)
    (MEMORY / path.lstrip("/") / "memory.limit_in_bytes").write_text(str(LIMIT))
    (CGROUPS / "cpu" / path.lstrip("/") / "cpu.cfs_quota_us").write_text("20000")
    procs = [str(folder / "cgroup.procs") for folder in made]
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, *procs], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for folder in made:
            wait_for(partial(_removed, folder), f"{folder} is removed")
            if folder.parent.parent != MEMORY:  # that one is the nursery's
                folder.parent.rmdir()


def _removed(folder: Path) -> bool:
    for each, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(each)
    return not folder.exists()


def record_hybrid(work: Path) -> None:
    tmpfs, disk = Path(f"/dev/shm/{work.name}"), work / "files"
    with (
        nursery(str(MEMORY), "pods", tmpfs) as pods,
        nursery(str(MEMORY), "batch", disk) as batch,
        busy(f"{pods.path}/live") as process,
    ):
        assert process.stdout is not None
        killed = int(process.stdout.readline())
        assert killed == -signal.SIGKILL
        older = tracked() - len(folders())
        pods.make(12)
        batch.make(5)
        renames = {_name(pods): "pods", _name(batch): "batch"}
        truth = record("hybrid-v1", renames) | {
            "about": "12 and 5 were made, with a page each in tmpfs and of a file on disk; "
            "the others are sessions' that ended before",
            "dying_before": older,
            "dying_by_parent": {"/pods": 12, "/batch": 5},
            "held_bytes": {"/pods": {"shmem": 12 * PAGE}},
            "nics": nics(),
            "unit_files": unit_files(),
            "usage": {"/pods/live": _used(process.pid)},
        }
        write("hybrid-v1", truth)


def _name(made: Nursery) -> str:
    return made.path.strip("/")


def _used(pid: int) -> Truth:
    """What the process itself says, and what it was given."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    seconds = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # its child's included
    return {
        "cpu_seconds": seconds,
        "memory_limit_bytes": LIMIT,
        "least_memory_bytes": HELD,
        "oom_kills": 1,
        "tasks": 1,
        "throttled": True,
    }


def record_kubelet(work: Path) -> None:
    log = work / "log"
    (work / "host").mkdir()
    outer = start_host(work / "host", log)  # no cgroup namespace: pods stand below the root
    try:
        host = ContainerHost(wait_for_first_process(outer, log), "", log, outer)
        socket = host.places.inside("/run/containerd/containerd.sock")
        host.wait_for(
            lambda: socket.is_socket() and "REF" in host.ctr("images", "ls", check=False),
            "containerd answers",
            60.0,
        )
        _make_pods(host)
    finally:
        outer.kill()
        outer.wait()
        for controller in CGROUPS.iterdir():
            if (controller / "kubepods").is_dir():
                wait_for(partial(_removed, controller / "kubepods"), "pods are removed")


def _make_pods(host: ContainerHost) -> None:
    host.run("mkdir", "-p", "/run/emptydir")
    live: dict[str, dict[str, str]] = {}
    for uid, (_, namespace, pod, containers) in PODS.items():
        for name, options in containers.items():
            host.run("mkdir", "-p", f"/var/log/pods/{namespace}_{pod}_{uid}/{name}")
            cgroup, identifier = _start(host, uid, name, "exec sleep 100000", *options)
            live[cgroup] = {
                "namespace": namespace, "pod": pod, "container": name, "pod_uid": uid,
                "container_id": identifier, "runtime": "containerd",
            }  # fmt: skip
    older = tracked() - len(folders())
    first = next(iter(PODS))
    for number in range(RESTARTS):
        _start(host, first, f"crasher#{number}",
               f"echo {number} > /data/run-{number}; exit 1", detached=False)  # fmt: skip
    first_pod = f"/kubepods/{PODS[first][0]}pod{first}"
    truth = record("kubelet-cgroupfs-v1", {}, host) | {
        "about": "a container of the first pod was started and failed as often as has died there; "
        "each left a page in the pod's volume in memory",
        "dying_before": older,
        "dying_by_parent": {first_pod: RESTARTS},
        "held_bytes": {first_pod: {"shmem": RESTARTS * PAGE}},
        "containers": live,
        "usage": {
            cgroup: {
                "memory_limit_bytes": LIMIT if said["container"] == "app" else None,
                "tasks": 1,
                "oom_kills": 0,
            }
            for cgroup, said in live.items()
        },
    }
    write("kubelet-cgroupfs-v1", truth)


def _start(
    host: ContainerHost, uid: str, name: str, command: str, *options: str, detached: bool = True
) -> tuple[str, str]:
    """A container of a pod; its cgroup and id."""
    qos, namespace, pod, _ = PODS[uid]
    identifier = hashlib.sha256(f"{pod}/{name}".encode()).hexdigest()
    cgroup = f"/kubepods/{qos}pod{uid}/{identifier}"
    told = {"container-type": "container", "container-name": name.partition("#")[0],
            "sandbox-name": pod, "sandbox-namespace": namespace, "sandbox-uid": uid}  # fmt: skip
    notes = [
        word
        for key, value in told.items()
        for word in ("--annotation", f"io.kubernetes.cri.{key}={value}")
    ]
    host.ctr("run", "--detach" if detached else "--rm", "--cgroup", cgroup, *notes, *options,
             "--mount", "type=bind,src=/run/emptydir,dst=/data,options=rbind:rw",
             "--rootfs", "/opt/rootfs", identifier, "/bin/sh", "-c", command,
             check=detached)  # fmt: skip
    return cgroup, identifier


def others() -> dict[str, str]:
    """A systemd in namespaces that runs here meanwhile, by a name that says so."""
    names = [entry.name for entry in MEMORY.iterdir() if entry.name.startswith("guest-")]
    return {name: f"machine-{number}" for number, name in enumerate(sorted(names), 1)}


def main() -> None:
    OWN_NAMES.update(others())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="record-", dir="/var/tmp") as folder:
        record_hybrid(Path(folder))
        record_kubelet(Path(folder))


if __name__ == "__main__":
    main()
