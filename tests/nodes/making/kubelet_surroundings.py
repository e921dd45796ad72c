"""Record the surroundings of a real kubelet, containerd and their pods, for the guard's table.

    python -m tests.nodes.making.kubelet_surroundings PID OUT.json

PID is the first process of a Kubernetes node in namespaces of its own, without a systemd: the
units are named after the programs, their processes, sockets, clients and pods are real.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

from nodescope.records.action import Target
from nodescope.remedy.guard.socket_use import SocketReading
from nodescope.remedy.guard.surroundings import Surroundings
from nodescope.remedy.guard.unit_surroundings import NodeLook
from nodescope.remedy.node_access import NodeAccess
from nodescope.sources.containers.pods import Pods
from nodescope.sources.places import Places
from nodescope.sources.processes.process_table import ProcessSeen, read_process_table

_UNITS = {
    "kubelet.service": ("kubelet",),
    "containerd.service": ("containerd", "containerd-shim"),
    "etcd.service": ("etcd",),
    "kube-apiserver.service": ("kube-apiserver",),
    "kube-scheduler.service": ("kube-scheduler",),
}
_PROC = Path("/proc")


def _of_node(pid: str) -> dict[int, ProcessSeen]:
    namespace = os.readlink(_PROC / pid / "ns/pid")
    found = {}
    for each in read_process_table(_PROC).processes.values():
        try:
            inside = os.readlink(_PROC / str(each.pid) / "ns/pid") == namespace
        except OSError:
            continue  # it ended
        if inside or any("kubepods" in path for path in each.cgroups):
            found[each.pid] = each
    return found


def record(pid: str, out: Path) -> None:
    """Write the surroundings of the node's programs, and the targets that its pods are."""
    node = NodeAccess(Places(root=_PROC / pid / "root"))
    table = read_process_table(_PROC)
    look = NodeLook(_PROC, table, SocketReading(_PROC, table, {os.getpid()}, {}), None, None, {})
    processes = _of_node(pid)
    units = []
    for name, programs in _UNITS.items():
        members = [each for each in processes.values() if each.comm in programs]
        use = look.sockets.use_of(members)
        units.append(
            Surroundings(
                name=name, kind="unit", state="active", listens=use.listens, clients=use.clients,
                reaches=use.reaches, runs_inside=look.kept_by(members, use.listens, node),
                programs=tuple(sorted({each.comm for each in members})), unseen=use.unseen,
            )
        )  # fmt: skip
    pods = [each.container for each in Pods(node.places).read()]
    targets = [
        Target("container", each.name, f"{each.namespace}/{each.pod}", "containerd")
        for each in pods
    ]
    document = {
        "recorded": time.strftime("%Y-%m-%d"),
        "units": [asdict(each) for each in units],
        "containers": [asdict(each) for each in targets],
    }
    out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
