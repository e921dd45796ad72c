"""Reads who would miss a container: its engine's other containers, its sockets, its pod.

A container that something else declares (a pod, a task of ECS, a service of Swarm, a job of
Nomad) comes back however often it is stopped here: it is changed where it is declared.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import replace

from nodescope.errors import SourceAbsent
from nodescope.judgement.container_loops import loops_by_counter
from nodescope.records.action import Target
from nodescope.records.json import JsonObject
from nodescope.remedy.engine import container_name, labels_of, open_engine
from nodescope.remedy.guard.socket_use import SocketReading
from nodescope.remedy.guard.surroundings import Surroundings
from nodescope.remedy.guard.unit_surroundings import find_proc, read_running
from nodescope.remedy.node_access import NodeAccess
from nodescope.sources.containers.docker import container_of
from nodescope.sources.processes.process_table import parse_cgroup_paths, read_process_table
from nodescope.wire.json_fields import inner, text

_HIDDEN = "its processes (in another namespace, or hidden)"
_POD = "io.kubernetes.pod"
# Who else declares containers, by the labels they put on them.
_DECLARED = (
    ("com.amazonaws.ecs.task-arn", "ECS runs it as task {}: change its task definition"),
    ("com.docker.swarm.service.name", "Swarm runs it for the service {}: change that service"),
    ("com.hashicorp.nomad.alloc_id", "Nomad runs it as allocation {}: change its job"),
)
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"  # of Kubernetes' names: no vowels, no 0, 1, 3
_OWNERS = (
    (re.compile(rf"(.+)-{_RANDOM}{{8,10}}-{_RANDOM}{{5}}"), "the deployment {}"),
    (re.compile(rf"(.+)-{_RANDOM}{{5}}"), "the daemon set, job or replica set {}"),
    (re.compile(r"(.+)-\d{1,5}"), "the stateful set {}"),
)
_SHARED = ("NetworkMode", "PidMode", "IpcMode")


def read_container_surroundings(target: Target, node: NodeAccess) -> Surroundings:
    """Read the facts about one container; `SourceError` if its engine cannot be asked."""
    name = target.name or ""
    if target.within or target.runtime in ("containerd", "cri-o", "kubelet"):
        return Surroundings(
            name=name, kind="container", state="", declared=describe_pod(target.within, name)
        )
    engine = open_engine(node, target.runtime)
    inspected = engine.inspect(name)
    if inspected is None:
        raise SourceAbsent(engine.path, f"{engine.runtime} has no container {name}")
    found = _read(name, inspected, node)
    if found.unseen and _started(inspected) != _started(engine.inspect(name) or {}):
        # It loops, and ended between the two looks: that is not hidden, but gone.
        return replace(found, unseen=tuple(each for each in found.unseen if each != _HIDDEN))
    return found


def _started(inspected: JsonObject) -> tuple[str | None, str | None]:
    state = inner(inspected, "State")
    return text(state, "StartedAt"), text(state, "FinishedAt")


def _read(name: str, inspected: JsonObject, node: NodeAccess) -> Surroundings:
    container, _ = container_of(inspected, "inspection")
    declared = find_declared(labels_of(inspected), name)
    proc = find_proc(node)
    table = read_process_table(proc)
    running = read_running(node)
    members = table.of_container(container.id)
    names = {id_: container_name(each) for id_, each in running.items()}
    use = SocketReading(proc, table, {os.getpid()}, names).use_of(members)
    unseen = list(use.unseen)
    if container.running and not members:
        unseen.append(_HIDDEN)
    return Surroundings(
        name=name,
        kind="container",
        state=container.state or "",
        loops=loops_by_counter(container, time.time_ns()),
        listens=use.listens,
        clients=use.clients,
        reaches=use.reaches,
        mounts=("/dev/fuse",) if any("/dev/fuse" in each.devices for each in members) else (),
        shared_by=find_dependants(inspected, running),
        programs=tuple(sorted({each.comm for each in members})),
        ours=_ours(container.id, proc / "self/cgroup"),
        declared=declared,
        unseen=tuple(unseen),
    )


def describe_pod(pod: str | None, name: str) -> str:
    """Return where a container of a pod is changed; `pod` is `NAMESPACE/POD`."""
    if not pod:
        return f"the kubelet runs {name} for a pod: change it where that pod is declared"
    owner = find_pod_owner(pod.partition("/")[2])
    by = f" of {owner}, by its name" if owner else ""
    return f"it belongs to the pod {pod}{by}: change it where the pod is declared"


def find_pod_owner(pod: str) -> str | None:
    """Return what made a pod, by the ends that controllers add to names; None: nothing tells.

    The node knows no owners. A deployment adds the hash of its template and five characters, a
    daemon set, a job or a replica set the five alone, a stateful set a number.
    """
    for pattern, words in _OWNERS:
        found = pattern.fullmatch(pod)
        if found is not None:
            return words.format(found[1])
    return None


def find_declared(labels: JsonObject, name: str) -> str:
    """Return where a container is declared, by its labels; empty if on this node alone."""
    pod = text(labels, f"{_POD}.name")
    if pod is not None:
        return describe_pod(f"{text(labels, f'{_POD}.namespace') or 'default'}/{pod}", name)
    for label, words in _DECLARED:
        value = text(labels, label)
        if value is not None:
            return words.format(value)
    return ""


def find_dependants(inspected: JsonObject, running: Mapping[str, JsonObject]) -> tuple[str, ...]:
    """Return the running containers that use its namespaces or volumes, or declare that they do.

    `docker compose` writes what a service depends on into a label of its containers.
    """
    identifier, name = text(inspected, "Id") or "", container_name(inspected)
    labels = labels_of(inspected)
    project = text(labels, "com.docker.compose.project")
    service = text(labels, "com.docker.compose.service")
    found = []
    for other, each in running.items():
        if other == identifier:
            continue
        host = inner(each, "HostConfig")
        shared = {text(host, key) for key in _SHARED}
        volumes = host.get("VolumesFrom")
        from_ = {str(volume).partition(":")[0] for volume in volumes or ()} if isinstance(
            volumes, list
        ) else set()  # fmt: skip
        named = {f"container:{identifier}", f"container:{name}"} & shared
        if named or {identifier, name} & from_ or _composed(each, project, service):
            found.append(f"container {container_name(each)}")
    return tuple(found)


def _composed(other: JsonObject, project: str | None, service: str | None) -> bool:
    labels = labels_of(other)
    if project is None or text(labels, "com.docker.compose.project") != project:
        return False
    depends = text(labels, "com.docker.compose.depends_on") or ""
    return service in {each.partition(":")[0] for each in depends.split(",")}


def _ours(identifier: str, own: os.PathLike[str]) -> str:
    try:
        with open(own, "rb") as file:
            paths = parse_cgroup_paths(file.read(1 << 16))
    except OSError:
        return ""
    return "nodescope itself runs in it" if any(identifier in path for path in paths) else ""
