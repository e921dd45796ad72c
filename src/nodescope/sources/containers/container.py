"""A container, whichever runtime runs it, and the events of its life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

from nodescope.quantities import SECOND_NS

TIMEOUT_S = 5.0  # of one answer of a daemon
RELIST_S = 60.0  # a list is read again: what was not told by an event
SAME_NS = 2 * SECOND_NS  # a start's time in a list and in its event differ by milliseconds
MAX_FILE = 4 << 20  # bytes of a container's file
MAX_CONTAINERS = 5000  # of one runtime; a node has some hundred


@dataclass(frozen=True, slots=True)
class Container:
    """One container; what its runtime does not tell is None."""

    runtime: str
    id: str
    name: str | None = None
    image: str | None = None
    state: str | None = None  # created, running, paused, restarting, exited, removed
    pid: int | None = None
    exit_status: int | None = None
    restarts: int | None = None
    started_wall_ns: int | None = None
    finished_wall_ns: int | None = None
    cgroup: str | None = None
    cgroup_parent: str | None = None
    namespace: str | None = None
    pod: str | None = None

    @property
    def subject(self) -> str:
        """Return the name that survives re-creation: its own, within its pod if it has one."""
        name = self.name or self.id
        return f"{self.namespace or '?'}/{self.pod}/{name}" if self.pod else name

    @property
    def running(self) -> bool:
        return self.state in ("running", "paused")


class HappeningKind(StrEnum):
    """The kinds of events of a container's life."""

    STARTED = "started"
    EXITED = "exited"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class ContainerHappening:
    """Something that happened to a container, which is given as it was then."""

    kind: HappeningKind
    wall_ns: int
    container: Container
    ran_ns: int | None = None  # of an end: how long this run had lasted


class Runtime(Protocol):
    """Somebody who runs containers, asked again and again by one caller."""

    @property
    def containers(self) -> Mapping[str, Container]:
        """Those it has now, by id, as of the last `poll`."""

    def poll(self, wall_ns: int) -> list[ContainerHappening]:
        """Return events since the last call, none at the first. Raises `SourceError`."""

    def close(self) -> None:
        """Let go of its descriptors; `poll` begins anew."""


def find_happenings(
    before: Mapping[str, Container], after: Mapping[str, Container], wall_ns: int
) -> list[ContainerHappening]:
    """Derive the events between two lists of the same runtime, in order of time.

    Of several runs between the two only the last one's start and end can be told.
    """
    found: list[ContainerHappening] = []
    for identifier, container in after.items():
        found += _changes(before.get(identifier), container, wall_ns)
    for identifier, container in before.items():
        if identifier in after:
            continue
        gone = replace(container, state="removed", pid=None)
        if container.running:
            found.append(_end(gone, wall_ns))
        found.append(ContainerHappening(HappeningKind.REMOVED, wall_ns, gone))
    return sorted(found, key=lambda happening: happening.wall_ns)


def _changes(before: Container | None, after: Container, wall_ns: int) -> list[ContainerHappening]:
    ended = not after.running and after.finished_wall_ns is not None
    if before is None:
        found = [_start(after, wall_ns)] if after.running or ended else []
        return [*found, _end(after, wall_ns)] if ended else found
    found = []
    again = _began_again(before, after)
    if before.running and (again or not after.running):
        found.append(_end(replace(after, started_wall_ns=before.started_wall_ns), wall_ns))
    if again:
        found.append(_start(after, wall_ns))
        if not before.running and ended and before.finished_wall_ns != after.finished_wall_ns:
            found.append(_end(after, wall_ns))
    return found


def _began_again(before: Container, after: Container) -> bool:
    if after.started_wall_ns is not None and after.started_wall_ns != before.started_wall_ns:
        return True
    if (after.restarts or 0) > (before.restarts or 0):
        return True
    return after.running and (not before.running or before.pid != after.pid)


def _start(container: Container, wall_ns: int) -> ContainerHappening:
    when = container.started_wall_ns
    if when is None:  # not told: no later than its end
        when = wall_ns if container.running else container.finished_wall_ns or wall_ns
    return ContainerHappening(HappeningKind.STARTED, when, container)


def _end(container: Container, wall_ns: int) -> ContainerHappening:
    started, finished = container.started_wall_ns, container.finished_wall_ns
    if finished is None or (started is not None and finished < started):
        finished = wall_ns  # its end was not told, or is an earlier run's
    ran = None if started is None else finished - started
    return ContainerHappening(HappeningKind.EXITED, finished, container, ran)
