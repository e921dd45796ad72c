"""Pods without any API: the kubelet's `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/N.log`.

N is the number of times the container was restarted; a restarted one gets a new
file, so the largest N is the count, also when the runtime forgot the earlier ids.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope.errors import source_error
from nodescope.sources.cgroups.owner_by_path import find_owner
from nodescope.sources.containers.container import MAX_CONTAINERS, Container
from nodescope.sources.places import Places
from nodescope.wire.json_fields import time_of

FOLDER = "/var/log/pods"
_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod by its folder."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodContainer:
    """A container of a pod, whatever its id is today."""

    pod: Pod
    name: str
    restarts: int | None
    started_wall_ns: int | None  # the first time in its newest log

    @property
    def container(self) -> Container:
        """Return the container as the kubelet's folders describe it, not whether it runs."""
        return Container(
            "kubelet",
            f"{self.pod.uid}/{self.name}",
            name=self.name,
            restarts=self.restarts,
            started_wall_ns=self.started_wall_ns,
            namespace=self.pod.namespace,
            pod=self.pod.name,
        )


def parse_pod_folder(name: str) -> Pod | None:
    """`NAMESPACE_POD_UID`; none of the three may hold an underscore."""
    parts = name.split("_")
    return Pod(*parts) if len(parts) == 3 and all(parts) else None


def parse_restarts(files: list[str]) -> int | None:
    """The largest N of the files `N.log`; rotated ones have more to their names."""
    stems = [name[:-4] for name in files if name.endswith(".log")]
    return max((int(stem) for stem in stems if stem.isdecimal() and len(stem) <= _MAX_DIGITS),
               default=None)  # fmt: skip


class Pods:
    """Reads the folders; a container's again only when its folder changed."""

    def __init__(self, places: Places) -> None:
        self._folder = places.inside(FOLDER)
        self._seen: dict[str, tuple[int, PodContainer]] = {}

    def read(self) -> list[PodContainer]:
        """Every container of every pod that has logs here."""
        try:
            names = sorted(os.listdir(self._folder))
        except OSError as error:
            raise source_error(self._folder, error) from error
        seen: dict[str, tuple[int, PodContainer]] = {}
        for name in names:
            pod = parse_pod_folder(name)
            if pod is not None and len(seen) < MAX_CONTAINERS:
                self._read_pod(pod, self._folder / name, seen)
        self._seen = seen
        return [container for _, container in seen.values()]

    def _read_pod(self, pod: Pod, folder: Path, seen: dict[str, tuple[int, PodContainer]]) -> None:
        try:
            with os.scandir(folder) as entries:
                found = [(e.path, e.name, e.stat().st_mtime_ns) for e in entries if e.is_dir()]
        except OSError:
            return  # removed while we looked
        for path, name, changed_ns in found:
            before = self._seen.get(path)
            if before is not None and before[0] == changed_ns:
                seen[path] = before
            else:
                seen[path] = (changed_ns, _read_container(pod, Path(path), name, before))


def _read_container(
    pod: Pod, folder: Path, name: str, before: tuple[int, PodContainer] | None
) -> PodContainer:
    try:
        restarts = parse_restarts(os.listdir(folder))
    except OSError:
        restarts = None  # removed while we looked
    if before is not None and before[1].restarts == restarts:
        return before[1]
    started = None if restarts is None else _first_time(folder / f"{restarts}.log")
    return PodContainer(pod, name, restarts, started)


def _first_time(path: Path) -> int | None:
    """The time that opens the first line of a log of the CRI: `TIME stdout F TEXT`."""
    try:
        with open(path, "rb") as file:
            start = file.read(64)
    except OSError:
        return None
    return time_of(start.partition(b" ")[0].decode("ascii", "replace"))


class PodIndex:
    """Finds the pod's container that a runtime's container is."""

    def __init__(self, listed: Sequence[PodContainer] = ()) -> None:
        self.listed = listed
        self._by_uid: dict[str, list[PodContainer]] = {}
        self._by_name: dict[tuple[str, str], PodContainer] = {}
        for each in listed:
            self._by_uid.setdefault(each.pod.uid, []).append(each)
            self._by_name[each.pod.name, each.name] = each

    def named(self, container: Container) -> Container:
        """A container with the names and restarts that the kubelet's folders have for it."""
        owner = None if container.pod else find_owner(container.cgroup or "")
        own = [] if owner is None else self._by_uid.get(owner.pod_uid or "", [])
        if own:
            pod = own[0].pod
            unnamed = container.name in (None, container.id) and len(own) == 1
            name = own[0].name if unnamed else container.name
            container = replace(container, namespace=pod.namespace, pod=pod.name, name=name)
        if container.pod is None or container.name is None:
            return container
        found = self._by_name.get((container.pod, container.name))
        if found is None or container.namespace not in (None, found.pod.namespace):
            return container
        restarts = max((n for n in (found.restarts, container.restarts) if n is not None),
                       default=None)  # fmt: skip
        return replace(container, namespace=found.pod.namespace, restarts=restarts)
