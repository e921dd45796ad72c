"""containerd over its socket: containers and tasks once, then its stream of events.

Containers of every namespace but `moby`'s (docker tells of its own). containerd
does not say when a task began, nor how one that is deleted ended: the first is
the kernel's to tell, the second is known if its end was followed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from nodescope.errors import SourceError
from nodescope.quantities import SECOND_NS
from nodescope.sources.containers import containerd_messages as messages
from nodescope.sources.containers.cgroups import Whereabouts, parent_of
from nodescope.sources.containers.container import (
    MAX_CONTAINERS,
    RELIST_S,
    SAME_NS,
    TIMEOUT_S,
    Container,
    ContainerHappening,
    HappeningKind,
    find_happenings,
)
from nodescope.sources.containers.oci import POD_SANDBOX
from nodescope.wire import protobuf
from nodescope.wire.grpc import GrpcConnection

_MAX_MESSAGE = 32 << 20
_MAX_EVENTS = 4 << 20
_MAX_NAMESPACES = 32
_MAX_LOOKED_AT = 16  # new ones at one poll: in a storm events tell enough by themselves
_DOCKERS = ("moby", "plugins.moby")

Key = tuple[str, str]


class Containerd:
    """One containerd, followed."""

    def __init__(self, path: Path, proc: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._proc = proc
        self._clock = clock
        self._daemon = GrpcConnection(path, TIMEOUT_S, _MAX_MESSAGE)
        self._stream: int | None = None
        self._listed_s: float | None = None
        self._known: dict[str, Container] = {}
        self._whereabouts = Whereabouts(proc)
        self._described: dict[Key, messages.Described] = {}
        self._runs: dict[str, int] = {}
        self._looks_left = 0

    @property
    def containers(self) -> dict[str, Container]:
        """Those it has now."""
        return self._known

    def poll(self, wall_ns: int) -> list[ContainerHappening]:
        """Return events since the last call."""
        try:
            found: list[ContainerHappening] = []
            if self._stream is None:
                self._stream = self._daemon.follow(messages.EVENTS, messages.SUBSCRIPTION, {})
            else:
                found = self._take()
            if self._listed_s is None or self._clock() - self._listed_s >= RELIST_S:
                found += self._relist(wall_ns)
            return found
        except SourceError:
            self.close()
            raise

    def close(self) -> None:
        self._daemon.close()
        self._stream = None
        if self._listed_s is not None:
            self._listed_s = float("-inf")  # what happens meanwhile is told from the next list

    # -- lists -----------------------------------------------------------------------

    def _relist(self, wall_ns: int) -> list[ContainerHappening]:
        first = self._listed_s is None
        self._listed_s = self._clock()
        after: dict[str, Container] = {}
        described: dict[Key, messages.Described] = {}
        for namespace in self._namespaces():
            tasks = self._tasks(namespace)
            for each in self._list(namespace):
                if len(after) < MAX_CONTAINERS:
                    described[namespace, each.id] = each
                    container = self._container(each, tasks.get(each.id))
                    if container is not None:
                        after[container.id] = container
        found = [] if first else find_happenings(self._known, after, wall_ns)
        self._known, self._described = after, described
        self._runs = {
            container.id: container.started_wall_ns
            for container in after.values()
            if container.running and container.started_wall_ns is not None
        }
        return found

    def _namespaces(self) -> list[str]:
        answer = self._daemon.call(messages.NAMESPACES, b"", {})
        if answer is None:
            raise SourceError(self._path, "refused to list its namespaces")
        names = messages.parse_namespaces(answer, self._path)
        return [name for name in names if name not in _DOCKERS][:_MAX_NAMESPACES]

    def _list(self, namespace: str) -> list[messages.Described]:
        answer = self._call(messages.CONTAINERS, namespace)
        if answer is None:
            return []  # the namespace went meanwhile
        return messages.parse_containers(answer, self._path, MAX_CONTAINERS)

    def _tasks(self, namespace: str) -> dict[str, messages.Task]:
        answer = self._call(messages.TASKS, namespace)
        if answer is None:
            return {}
        return messages.parse_tasks(answer, self._path, MAX_CONTAINERS)

    def _call(self, method: str, namespace: str, message: bytes = b"") -> bytes | None:
        return self._daemon.call(method, message, {"containerd-namespace": namespace})

    def _container(
        self, described: messages.Described, task: messages.Task | None
    ) -> Container | None:
        """A container and its task together; None for what only holds a pod together."""
        identity = described.identity
        if identity.name == POD_SANDBOX:
            return None
        before = self._known.get(described.id)
        cgroup = self._whereabouts.find(described.id, task.pid if task else None, identity.cgroup)
        container = Container(
            "containerd",
            described.id,
            name=identity.name or described.id,
            image=described.image,
            state="created",
            restarts=described.restarts,
            cgroup=cgroup,
            cgroup_parent=parent_of(cgroup),
            namespace=identity.namespace,
            pod=identity.pod,
        )
        if task is None:
            return _without_task(container, before)
        started = self._started_ns(task.pid, before)
        return replace(
            container,
            state=task.state,
            pid=task.pid,
            exit_status=task.exit_status,
            started_wall_ns=started,
            finished_wall_ns=task.finished_wall_ns,
        )

    def _started_ns(self, pid: int | None, before: Container | None) -> int | None:
        """When a task's process began: as its event said, else as the kernel does."""
        if before is not None and (pid is None or before.pid == pid):
            return before.started_wall_ns
        return None if pid is None else read_start_ns(self._proc, pid)

    # -- events ----------------------------------------------------------------------

    def _take(self) -> list[ContainerHappening]:
        assert self._stream is not None
        self._looks_left = _MAX_LOOKED_AT
        found: list[ContainerHappening] = []
        for data in self._daemon.take(self._stream, _MAX_EVENTS):
            event = messages.parse_event(data, self._path)
            if event is not None and event.namespace not in _DOCKERS:
                found += self._event(event)
        return found

    def _event(self, event: messages.ContainerdEvent) -> list[ContainerHappening]:
        if event.topic == "/containers/delete":
            return self._deleted(event)
        container = self._look(event)
        if container is None:
            return []
        if event.topic == "/tasks/start":
            return self._started(event, container)
        if event.topic == "/tasks/exit":
            return self._exited(event, container)
        if event.topic in ("/tasks/paused", "/tasks/resumed"):
            state = "paused" if event.topic == "/tasks/paused" else "running"
            container = replace(container, state=state)
        self._known[container.id] = container
        return []

    def _started(
        self, event: messages.ContainerdEvent, container: Container
    ) -> list[ContainerHappening]:
        told_ns = self._runs.get(container.id)
        if told_ns is not None and event.wall_ns < told_ns + SAME_NS:
            return []  # a list had it already
        cgroup = container.cgroup
        if event.pid is not None:
            described = self._described.get((event.namespace, event.container))
            expected = described.identity.cgroup if described else None
            cgroup = self._whereabouts.find(container.id, event.pid, expected)
        started = replace(
            container,
            state="running",
            pid=event.pid,
            exit_status=None,
            started_wall_ns=event.wall_ns,
            finished_wall_ns=None,
            cgroup=cgroup,
            cgroup_parent=parent_of(cgroup),
        )
        self._known[container.id] = started
        self._runs[container.id] = event.wall_ns
        return [ContainerHappening(HappeningKind.STARTED, event.wall_ns, started)]

    def _exited(
        self, event: messages.ContainerdEvent, container: Container
    ) -> list[ContainerHappening]:
        began_ns = self._runs.pop(container.id, None)
        if began_ns is None and not container.running:
            return []  # a list had it already
        ended = replace(
            container,
            state="exited",
            pid=None,
            exit_status=event.exit_status,
            finished_wall_ns=event.wall_ns,
        )
        self._known[container.id] = ended
        ran = None if began_ns is None else max(0, event.wall_ns - began_ns)
        return [ContainerHappening(HappeningKind.EXITED, event.wall_ns, ended, ran)]

    def _deleted(self, event: messages.ContainerdEvent) -> list[ContainerHappening]:
        self._described.pop((event.namespace, event.container), None)
        self._runs.pop(event.container, None)
        gone = self._known.pop(event.container, None)
        if gone is None:
            return []
        return [
            ContainerHappening(
                HappeningKind.REMOVED, event.wall_ns, replace(gone, state="removed", pid=None)
            )
        ]

    def _look(self, event: messages.ContainerdEvent) -> Container | None:
        """The container of an event: as known, as it is now, or at least by its id."""
        known = self._known.get(event.container)
        if known is not None and event.topic != "/containers/create":
            return known
        if (event.namespace, event.container) in self._described and known is None:
            return None  # a sandbox
        if len(self._known) >= MAX_CONTAINERS:
            return None
        answer = None
        if self._looks_left > 0:
            self._looks_left -= 1
            question = protobuf.text_field(1, event.container)
            answer = self._call(messages.CONTAINER, event.namespace, question)
        if answer is None:  # gone already, or one of too many
            return Container("containerd", event.container, name=event.container)
        described = messages.parse_container(answer, self._path)
        self._described[event.namespace, event.container] = described
        return self._container(described, None)


def _without_task(container: Container, before: Container | None) -> Container:
    """A container whose task is deleted keeps what was seen of its last run."""
    if before is None or before.started_wall_ns is None:
        return container
    return replace(
        container,
        state="exited",
        exit_status=before.exit_status,
        started_wall_ns=before.started_wall_ns,
        finished_wall_ns=before.finished_wall_ns,
    )


def read_start_ns(proc: Path, pid: int) -> int | None:
    """When a process began, on the wall clock, from `/proc/PID/stat`; None if it is gone."""
    try:
        with open(proc / str(pid) / "stat", "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
        ticks = int(fields[19])
    except (OSError, IndexError, ValueError):
        return None
    since_boot = ticks * SECOND_NS // os.sysconf("SC_CLK_TCK")
    return since_boot + time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
