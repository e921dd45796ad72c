"""Whose cgroup it is, as its path says.

Kubelet, container runtimes, ECS and systemd each name cgroups in their own way:

    /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope
    /kubelet.slice/…/kubelet-kubepods-burstable-pod<uid>.slice/…   below a root of its own (kind)
    /kubepods/burstable/pod<uid>/<id>          the same by the cgroupfs driver
    …/kubepods-burstable-pod<uid>.slice:cri-containerd:<id>   drivers that do not agree
    /system.slice/docker-<id>.scope, /docker/<id>, /machine.slice/libpod-<id>.scope
    /ecs/<task>/<id>, /ecstasks.slice/ecstasks-<task>.slice/docker-<id>.scope
    /user.slice/user-1000.slice/session-3.scope, /system.slice/sshd.service

What lies deeper belongs to the innermost container that a path names, and within
that to the innermost unit. What containers and pods are called is not in the
path: `container_names` finds out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ID = r"(?P<id>[0-9a-f]{64}|[0-9a-f]{32}-[0-9]{10})"  # the second: tasks of ECS on Fargate
_RUNTIMES = {
    "cri-containerd": "containerd",
    "nerdctl": "containerd",
    "crio": "cri-o",
    "docker": "docker",
    "libpod": "podman",
}
_PREFIXED = re.compile(
    rf"(?:(?P<parent>.*):)?(?P<runtime>{'|'.join(_RUNTIMES)})[-:](?P<monitor>conmon-)?{_ID}(?:\.scope)?"
)
_BARE = re.compile(_ID)
_UID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"  # static pods: a hash
# systemd's names repeat those above: what the kubelet's root is called stands before.
_POD = re.compile(rf"(?:(?:.+-)?kubepods(?:-[a-z]+)?-)?pod(?P<uid>{_UID})(?:\.slice)?")
_TASK_SLICE = re.compile(r"ecstasks-(?P<task>[0-9a-f_]+)\.slice")
_SESSION = re.compile(r"session-[^/]+\.scope")
_UNIT_KINDS = (".service", ".scope", ".socket", ".mount", ".swap")
_PARENT_RUNTIMES = {"docker": "docker", "libpod_parent": "podman"}


@dataclass(frozen=True, slots=True)
class CgroupOwner:
    """Whose it is; what the path does not say is None."""

    kind: str  # pod, container, unit, slice or session
    runtime: str | None = None
    unit: str | None = None
    pod_uid: str | None = None
    container_id: str | None = None


def find_owner(path: str) -> CgroupOwner | None:
    """Whose cgroup `path` is; None if its names follow no custom we know."""
    kind = runtime = unit = pod_uid = container_id = None
    parents: list[str] = []
    for name in path.split("/")[1:]:
        found = _container(name, parents)
        if found is not None:
            kind, runtime, container_id, unit = "container", *found, None
            pod_uid = _named_pod(name) or pod_uid
        elif (pod := _pod(name, parents)) is not None:
            kind, pod_uid, container_id, unit = "pod", pod, None, None
            runtime = "ecs" if "ecs" in parents[:1] or name.startswith("ecstasks-") else None
        if name.endswith((*_UNIT_KINDS, ".slice")):
            kind, unit = _unit(name, kind, unit)
        parents.append(name)
    if kind is None:
        return None
    if runtime is None and kind in ("unit", "slice", "session"):
        runtime = "systemd"
    return CgroupOwner(kind, runtime, unit, pod_uid, container_id)


def _container(name: str, parents: list[str]) -> tuple[str | None, str] | None:
    """Runtime and id, if the name is a container's."""
    prefixed = _PREFIXED.fullmatch(name)
    if prefixed is not None:
        # A monitor (conmon) lives beside its container: it is a unit of its own.
        return None if prefixed["monitor"] else (_RUNTIMES[prefixed["runtime"]], prefixed["id"])
    bare = _BARE.fullmatch(name)
    if bare is None or not parents:
        return None
    if parents[0] == "ecs":  # right below it are tasks
        return ("ecs", bare["id"]) if len(parents) > 1 else None
    return _PARENT_RUNTIMES.get(parents[-1]), bare["id"]


def _named_pod(name: str) -> str | None:
    """The uid of the pod that a container's own name has before its runtime."""
    prefixed = _PREFIXED.fullmatch(name)
    return _pod(prefixed["parent"] or "", []) if prefixed is not None else None


def _pod(name: str, parents: list[str]) -> str | None:
    """The uid, if the name is a pod's, or a task of ECS."""
    pod = _POD.fullmatch(name)
    if pod is not None:
        return pod["uid"].replace("_", "-")
    task = _TASK_SLICE.fullmatch(name)
    if task is not None:
        return task["task"].replace("_", "-")
    return name if parents == ["ecs"] else None


def _unit(name: str, kind: str | None, unit: str | None) -> tuple[str, str]:
    """Return the owner that a unit's name adds to the owner of the path above it."""
    if kind in ("container", "pod"):
        return kind, name
    if _SESSION.fullmatch(name):
        return "session", name
    if name.endswith(".slice"):
        # A slice inside a service is that service's own affair, until a unit is in it.
        return ("slice", name) if kind in (None, "slice") else (kind, unit or name)
    return "unit", name
