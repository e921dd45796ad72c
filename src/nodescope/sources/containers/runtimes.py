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
from pathlib import Path

from nodescope.errors import SourceAbsent, SourceError
from nodescope.sources.containers.container import Container, Happening, Runtime
from nodescope.sources.containers.containerd import Containerd
from nodescope.sources.containers.cri_files import CriFiles
from nodescope.sources.containers.docker import Docker
from nodescope.sources.containers.docker_files import DockerFiles
from nodescope.sources.containers.listed import Listed
from nodescope.sources.containers.podman import PodmanFiles
from nodescope.sources.containers.pods import PodIndex, Pods
from nodescope.sources.places import Places

_DOCKER = ("/run/docker.sock", "/var/run/docker.sock")
_CONTAINERD = (
    "/run/containerd/containerd.sock",
    "/run/k3s/containerd/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
)
_RETRY_S = 60.0
_LIST_S = 10.0

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


def _first_socket(places: Places, paths: Sequence[str]) -> Path:
    for path in paths:
        found = places.inside(path)
        # /var/run of a root mounted elsewhere leads back to our own /run
        if found.is_socket() and not (path.startswith("/var/run/") and _leads_out(places)):
            return found
    raise SourceAbsent(places.inside(paths[0]), "no such socket")


def _leads_out(places: Places) -> bool:
    return places.root != Path("/") and places.inside("/var/run").is_symlink()


@dataclass(slots=True)
class _Way:
    """One way of asking a runtime: made when it is found, made again after it failed."""

    make: Callable[[], Runtime]
    pace_s: float = 0.0
    runtime: Runtime | None = None
    due_s: float = 0.0


@dataclass(slots=True)
class _Asked:
    """One runtime, asked in the best way that works."""

    name: str
    ways: tuple[_Way, ...]
    current: Runtime | None = None
    error: SourceError | None = None

    @property
    def containers(self) -> Mapping[str, Container]:
        return self.current.containers if self.current is not None else {}

    def poll(self, wall_ns: int, now_s: float) -> list[Happening]:
        """Ask; a failure is kept in `error` and the next way tried."""
        error: SourceError | None = None
        for way in self.ways:
            if now_s < way.due_s:
                if way.runtime is not None:
                    return []  # it answered a moment ago
                continue
            try:
                if way.runtime is None:
                    way.runtime = way.make()
                found = way.runtime.poll(wall_ns)
            except SourceError as raised:
                way.due_s = now_s + _RETRY_S
                if way.runtime is not None and isinstance(raised, SourceAbsent):
                    way.runtime = None  # it may come back elsewhere
                if error is None or isinstance(error, SourceAbsent):
                    error = raised
                continue
            way.due_s = now_s + way.pace_s
            self.current, self.error = way.runtime, None
            return found
        if error is not None:
            self.error = error
            if isinstance(error, SourceAbsent):
                self.current = None
        return []


@dataclass(slots=True)
class Polled:
    """What one round brought: happenings of all, and who could not be asked."""

    happenings: list[Happening] = field(default_factory=list)
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
                _Way(lambda: Listed(DockerFiles(places).read), _LIST_S),
            )),
            _Asked("containerd", (
                _Way(lambda: Containerd(find_containerd_socket(places), places.proc)),
                _Way(lambda: Listed(CriFiles(places).read), _LIST_S),
            )),
            _Asked("podman", (_Way(lambda: PodmanFiles(places), _LIST_S),)),
            _Asked("kubelet", (_Way(lambda: Listed(self._read_kubelets), _LIST_S),)),
        ]  # fmt: skip

    def poll(self, wall_ns: int) -> Polled:
        """Ask all; raises `SourceAbsent` if this node has no runtime at all."""
        now_s = self._clock()
        self._read_pods(now_s)
        polled = Polled()
        for asked in self._asked:
            polled.happenings += asked.poll(wall_ns, now_s)
            if asked.error is not None and not isinstance(asked.error, SourceAbsent):
                polled.failed[asked.name] = asked.error
        if all(asked.current is None for asked in self._asked) and not polled.failed:
            raise SourceAbsent("containers", "no docker, containerd, podman or kubelet here")
        self._gather()
        polled.happenings = [
            Happening(each.kind, each.wall_ns, self._index.named(each.container), each.ran_ns)
            for each in polled.happenings
        ]
        return polled

    def read_recent(self, wall_ns: int, since_ns: int) -> list[Happening]:
        """What runtimes still remember of the past: docker does, podman may."""
        found: list[Happening] = []
        for asked in self._asked:
            if isinstance(asked.current, Docker | PodmanFiles):
                try:
                    found += asked.current.read_recent(wall_ns, since_ns)
                except SourceError as error:
                    asked.error = error
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
    """Whether a container is a pod's by where its cgroup stands."""
    return "/kubepods" in (container.cgroup or "")
