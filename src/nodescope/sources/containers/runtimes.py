"""Every runtime of a node, asked together: whoever fails keeps nobody else from answering.

Each runtime has ways of being asked, the best first: docker and containerd over
their sockets, else by their files. Pods' names and restart counts come from the
kubelet's folders, whichever runtime runs them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from nodescope.errors import SourceAbsent, SourceDenied, SourceError
from nodescope.sources.containers.container import Container, ContainerHappening, Runtime
from nodescope.sources.containers.containerd import Containerd
from nodescope.sources.containers.cri_files import CriFiles, read_status
from nodescope.sources.containers.docker import Docker
from nodescope.sources.containers.docker_files import DockerFiles
from nodescope.sources.containers.list_only import ListedRuntime
from nodescope.sources.containers.podman import PodmanFiles
from nodescope.sources.containers.pods import PodIndex, Pods
from nodescope.sources.places import Places

_DOCKER = ("/run/docker.sock", "/var/run/docker.sock")
_CONTAINERD = (
    "/run/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
)
_RETRY_S = 5.0  # after the first failure; then twice as long each time
_LONGEST_S = 60.0
_LIST_S = 10.0
_SAME_NS = 50_000_000  # one moment, told in two ways; no container starts twice within it
_MAX_TOLD = 10_000

Clock = Callable[[], float]
Key = tuple[str, str]


def find_docker_socket(places: Places) -> Path:
    """Where dockerd listens: `DOCKER_HOST` if it is a Unix socket, else a usual place."""
    host = os.environ.get("DOCKER_HOST", "")
    if host.startswith("unix://"):
        return Path(host.removeprefix("unix://"))
    return _first_socket(places, _DOCKER)


def find_containerd_socket(places: Places) -> Path:
    """Where containerd listens: `CONTAINERD_ADDRESS`, else a usual place."""
    address = os.environ.get("CONTAINERD_ADDRESS", "").removeprefix("unix://")
    return Path(address) if address else _first_socket(places, _CONTAINERD)


def _connect_containerd(places: Places) -> Containerd:
    path = find_containerd_socket(places)
    return Containerd(path, places.proc, status=partial(read_status, places))


def _first_socket(places: Places, paths: Sequence[str]) -> Path:
    for path in paths:
        found = places.inside(path)
        if found.is_socket():
            return found
    raise SourceAbsent(places.inside(paths[0]), "no such socket")


@dataclass(slots=True)
class _Way:
    """One way of asking a runtime: made when it is found, made again when it has gone."""

    make: Callable[[], Runtime]
    pace_s: float = 0.0
    runtime: Runtime | None = None
    due_s: float = 0.0
    retry_s: float = _RETRY_S
    error: SourceError | None = None

    def poll(self, wall_ns: int, now_s: float) -> list[ContainerHappening] | None:
        """Return events since the last call; None if the runtime cannot be asked now."""
        if now_s < self.due_s:
            return None if self.error is not None else []
        try:
            if self.runtime is None:
                self.runtime = self.make()
            found = self.runtime.poll(wall_ns)
        except SourceError as error:
            self.error = error
            self.due_s, self.retry_s = now_s + self.retry_s, min(2 * self.retry_s, _LONGEST_S)
            if isinstance(error, SourceAbsent):
                self.runtime = None  # it may come back elsewhere
            return None
        self.due_s, self.retry_s, self.error = now_s + self.pace_s, _RETRY_S, None
        return found


@dataclass(slots=True)
class _Asked:
    """One runtime, asked in the best way that works."""

    name: str
    ways: tuple[_Way, ...]
    current: Runtime | None = None
    told: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def containers(self) -> Mapping[str, Container]:
        return self.current.containers if self.current is not None else {}

    @property
    def error(self) -> SourceError | None:
        """Why it is not seen, or not in the best way that should work here."""
        errors = [way.error for way in self.ways if way.error is not None]
        return next((each for each in errors if not isinstance(each, SourceAbsent)), None)

    def poll(self, wall_ns: int, now_s: float) -> list[ContainerHappening]:
        """Return events since the last call, each once though two readers may know of it.

        A daemon that does not answer tells when it does again, and better than its
        files: until then they say what there is, not what happened.
        """
        will_tell = False
        for way in self.ways:
            found = way.poll(wall_ns, now_s)
            if found is not None:
                self.current = way.runtime
                return [] if will_tell else [each for each in found if self._is_new(each)]
            will_tell = will_tell or not isinstance(way.error, SourceAbsent | SourceDenied)
        if self.error is None:
            self.current = None  # it is not here
        return []

    def _is_new(self, happening: ContainerHappening) -> bool:
        key = happening.kind.value, happening.container.id
        told_ns = self.told.get(key)
        if told_ns is not None and abs(happening.wall_ns - told_ns) < _SAME_NS:
            return False
        if len(self.told) >= _MAX_TOLD:
            self.told.clear()
        self.told[key] = happening.wall_ns
        return True


@dataclass(slots=True)
class Polled:
    """The events of one round over all runtimes, and the runtimes that did not answer."""

    happenings: list[ContainerHappening] = field(default_factory=list)
    failed: dict[str, SourceError] = field(default_factory=dict)


class Runtimes:
    """All runtimes of one node."""

    def __init__(self, places: Places, clock: Clock = time.monotonic) -> None:
        self.containers: dict[Key, Container] = {}
        self._clock = clock
        self._pods = Pods(places)
        self._index = PodIndex()
        self._pods_due_s = 0.0
        self._raw: dict[Key, tuple[Container, PodIndex]] = {}
        self._asked = [
            _Asked("docker", (
                _Way(lambda: Docker(find_docker_socket(places), places.proc)),
                _Way(lambda: ListedRuntime(DockerFiles(places).read), _LIST_S),
            )),
            _Asked("containerd", (
                _Way(lambda: _connect_containerd(places)),
                _Way(lambda: ListedRuntime(CriFiles(places).read), _LIST_S),
            )),
            _Asked("podman", (_Way(lambda: PodmanFiles(places), _LIST_S),)),
            _Asked("kubelet", (_Way(lambda: ListedRuntime(self._read_kubelets), _LIST_S),)),
        ]  # fmt: skip

    def poll(self, wall_ns: int) -> Polled:
        """Ask all; raises `SourceAbsent` if this node has no runtime at all."""
        now_s = self._clock()
        self._read_pods(now_s)
        polled = Polled()
        for asked in self._asked:
            polled.happenings += asked.poll(wall_ns, now_s)
            if asked.error is not None:
                polled.failed[asked.name] = asked.error
        if all(asked.current is None for asked in self._asked) and not polled.failed:
            raise SourceAbsent("containers", "no docker, containerd, podman or kubelet here")
        self._gather()
        polled.happenings = [
            ContainerHappening(
                each.kind, each.wall_ns, self._index.named(each.container), each.ran_ns
            )
            for each in polled.happenings
        ]
        return polled

    def read_recent(self, wall_ns: int, since_ns: int) -> list[ContainerHappening]:
        """Return the past events that runtimes still have: docker keeps them, podman may."""
        found: list[ContainerHappening] = []
        for asked in self._asked:
            if isinstance(asked.current, Docker | PodmanFiles):
                try:
                    found += asked.current.read_recent(wall_ns, since_ns)
                except SourceError:
                    continue  # it answered a moment ago: what there is now is known
        return found

    def close(self) -> None:
        """Let go of all connections."""
        for asked in self._asked:
            for way in asked.ways:
                if way.runtime is not None:
                    way.runtime.close()

    def _gather(self) -> None:
        """All containers with their pods' names; those that did not change are not made anew."""
        gathered: dict[Key, Container] = {}
        raw: dict[Key, tuple[Container, PodIndex]] = {}
        for asked in self._asked:
            for container in asked.containers.values():
                key = container.runtime, container.id
                raw[key] = container, self._index
                known = self._raw.get(key)
                if known is not None and known[0] is container and known[1] is self._index:
                    gathered[key] = self.containers[key]
                else:
                    gathered[key] = self._index.named(container)
        self.containers, self._raw = gathered, raw

    def _read_pods(self, now_s: float) -> None:
        if now_s < self._pods_due_s:
            return
        self._pods_due_s = now_s + _LIST_S
        try:
            listed = self._pods.read()
        except SourceError:
            listed = []  # no kubelet here, or not for us: told as the runtime `kubelet`
        if listed != list(self._index.listed):
            self._index = PodIndex(listed)

    def _read_kubelets(self) -> dict[str, Container]:
        """Containers of pods, where no runtime tells of any."""
        self._pods.read()  # raises if there are none to tell of
        others = [asked for asked in self._asked if asked.name != "kubelet"]
        if any(c.pod or pod_cgroup(c) for asked in others for c in asked.containers.values()):
            return {}
        return {each.container.id: each.container for each in self._index.listed}


def pod_cgroup(container: Container) -> bool:
    """Return whether a container belongs to a pod, by the place of its cgroup."""
    return "kubepods" in (container.cgroup or "")  # kind's: /kubelet.slice/kubelet-kubepods.slice
