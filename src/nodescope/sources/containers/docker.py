"""dockerd over its socket: the list once, then its stream of events (docs.docker.com/engine/api).

Events carry their own times, so nothing is lost between two polls but what a
container looked like while it lived. The daemon keeps the last 256 events: what
happened while it did not answer, or before anybody listened, it tells afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope.errors import MalformedSource, SourceError
from nodescope.quantities import SECOND_NS
from nodescope.records.json import JsonObject
from nodescope.sources.containers.cgroups import Whereabouts, docker_cgroup, parent_of
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
from nodescope.wire.http import HttpConnection, status_error
from nodescope.wire.json_fields import (
    inner,
    number_of,
    parse_json,
    parse_object,
    process,
    text,
    time_of,
    whole,
)

_MAX_LIST = 32 << 20
_MAX_INSPECT = 4 << 20
_MAX_LINE = 1 << 20
_MAX_EVENTS = 4 << 20  # bytes taken at one poll
_MAX_INSPECTED = 500  # of a list; of the rest only events tell
_MAX_LOOKED_AT = 16  # of a batch of events: in a storm they tell enough by themselves
_ACTIONS = ("create", "start", "die", "destroy", "rename", "pause", "unpause")
_FILTERS = '{"type":["container"],"event":[' + ",".join(f'"{action}"' for action in _ACTIONS) + "]}"
_ESCAPED = "".join(c if c.isalnum() else f"%{ord(c):02X}" for c in _FILTERS)


@dataclass(frozen=True, slots=True)
class DockerEvent:
    """One event of a container."""

    action: str
    wall_ns: int
    id: str
    name: str | None
    image: str | None
    exit_status: int | None


def parse_event(line: bytes, path: str | Path) -> DockerEvent | None:
    """One line of the stream; None if it is not about a container's life."""
    event = parse_object(line, path)
    actor = inner(event, "Actor")
    attributes = inner(actor, "Attributes")
    identifier, action = text(actor, "ID"), text(event, "Action")
    wall_ns = whole(event, "timeNano")
    if event.get("Type") != "container" or action not in _ACTIONS:
        return None
    if identifier is None or wall_ns is None:
        raise MalformedSource(path, "an event without an id or a time")
    return DockerEvent(
        action,
        wall_ns,
        identifier,
        text(attributes, "name"),
        text(attributes, "image"),
        number_of(text(attributes, "exitCode")),
    )


def parse_inspect(content: bytes, path: str | Path) -> tuple[Container, str | None]:
    """A container from its inspection, without its cgroup, and the cgroup parent it asked for."""
    return container_of(parse_object(content, path), path)


def container_of(
    fields: JsonObject, path: str | Path, host: JsonObject | None = None
) -> tuple[Container, str | None]:
    """The same, from what inspection and `config.v2.json` have in common."""
    state, config = inner(fields, "State"), inner(fields, "Config")
    identifier = text(fields, "Id") or text(fields, "ID")
    if identifier is None:
        raise MalformedSource(path, "a container without an id")
    labels = inner(config, "Labels")
    started = time_of(text(state, "StartedAt"))
    status = text(state, "Status") or _status(state, started)
    ended = status not in ("running", "paused", "created")
    container = Container(
        "docker",
        identifier,
        name=_name(text(fields, "Name"), labels),
        image=text(config, "Image"),
        state="removed" if status == "removing" else status,
        pid=process(state, "Pid"),
        exit_status=whole(state, "ExitCode") if ended else None,
        restarts=whole(fields, "RestartCount"),
        started_wall_ns=started,
        finished_wall_ns=time_of(text(state, "FinishedAt")),
        namespace=text(labels, "io.kubernetes.pod.namespace"),
        pod=text(labels, "io.kubernetes.pod.name"),
    )
    host = inner(fields, "HostConfig") if host is None else host
    return container, text(host, "CgroupParent")


def _status(state: JsonObject, started: int | None) -> str:
    """The one word that inspection has and `config.v2.json` has not."""
    for flag, status in (
        ("Dead", "dead"),
        ("RemovalInProgress", "removing"),
        ("Restarting", "restarting"),
        ("Paused", "paused"),
        ("Running", "running"),
    ):
        if state.get(flag) is True:
            return status
    return "created" if started is None else "exited"


def _name(name: str | None, labels: JsonObject) -> str | None:
    """Stable over ids: of a pod's container its own, of another what docker calls it."""
    return text(labels, "io.kubernetes.container.name") or (name.lstrip("/") if name else None)


class Docker:
    """One dockerd, followed."""

    def __init__(self, path: Path, proc: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.containers: dict[str, Container] = {}
        self._path = path
        self._clock = clock
        self._asking = HttpConnection(path, TIMEOUT_S)
        self._events = HttpConnection(path, TIMEOUT_S)
        self._following = False
        self._listed_s: float | None = None
        self._rest = b""
        self._driver: str | None = None
        self._whereabouts = Whereabouts(proc)
        self._parents: dict[str, str] = {}  # cgroup parent asked for, by name
        self._runs: dict[str, int] = {}  # when the present run of an id began
        self._ends: dict[str, int] = {}  # when an id ended, as the last list had it
        self._since_ns: int | None = None  # what happened before is told

    def poll(self, wall_ns: int) -> list[ContainerHappening]:
        """Return events since the last call."""
        if self._since_ns is None:
            self._since_ns = wall_ns
        try:
            came = self._follow() if not self._following else b""
            came += self._events.read_available(_MAX_EVENTS)
            found = self._take(came)
            if self._listed_s is None or self._clock() - self._listed_s >= RELIST_S:
                found += self._relist(wall_ns)
            return found
        except SourceError:
            self.close()
            raise
        finally:
            self._asking.close()

    def read_recent(self, wall_ns: int, since_ns: int) -> list[ContainerHappening]:
        """Return the past events that the daemon still has, without following it."""
        span = f"since={_seconds(since_ns)}&until={_seconds(wall_ns)}"
        lines = self._get(f"/events?{span}&filters={_ESCAPED}", _MAX_EVENTS)
        events = [parse_event(line, self._path) for line in lines.splitlines() if line.strip()]
        runs: dict[str, int] = {}
        found = [_happening(each, self._as_told(each), runs) for each in events if each is not None]
        return [happening for happening in found if happening is not None]

    def close(self) -> None:
        self._asking.close()
        self._events.close()
        self._following = False

    # -- beginning, and making sure ------------------------------------------

    def _follow(self) -> bytes:
        """Follow from where we were, and let the next list tell what no event does."""
        info = parse_object(self._get("/info", _MAX_INSPECT), self._path)
        self._driver = text(info, "CgroupDriver")
        self._rest = b""
        since = _seconds(self._since_ns or 0)
        came = self._events.follow(f"/events?since={since}&filters={_ESCAPED}")
        self._following = True
        if self._listed_s is not None:
            self._listed_s = float("-inf")
        return came

    def _relist(self, wall_ns: int) -> list[ContainerHappening]:
        """Compare what we believe with what the daemon has; nothing happened the first time."""
        first = self._listed_s is None
        self._listed_s = self._clock()
        listed = self._list()
        changed = [id_ for id_, state in listed.items() if self._state(id_) != state]
        changed.sort(key=lambda id_: listed[id_] != "running")  # they tell where the tree stands
        after = {id_: self.containers[id_] for id_ in listed if id_ in self.containers}
        for identifier in changed[:_MAX_INSPECTED]:
            container = self._inspect(identifier)
            if container is not None:
                after[identifier] = container
        found = [] if first else find_happenings(self.containers, after, wall_ns)
        self.containers = after
        # What began or ended since this poll did will be told by its event.
        until_ns = wall_ns if first else wall_ns + SAME_NS
        self._runs, self._ends = {}, {}
        for id_, container in after.items():
            times = self._runs if container.running else self._ends
            at_ns = container.started_wall_ns if container.running else container.finished_wall_ns
            if at_ns is not None and at_ns < until_ns:
                times[id_] = at_ns
        return found

    def _state(self, identifier: str) -> str | None:
        known = self.containers.get(identifier)
        return None if known is None else known.state

    def _list(self) -> dict[str, str | None]:
        content = self._get("/containers/json?all=1", _MAX_LIST)
        listed = parse_json(content, self._path)
        if not isinstance(listed, list):
            raise MalformedSource(self._path, "/containers/json: not a list")
        states = {}
        for fields in listed[:MAX_CONTAINERS]:
            identifier = text(fields, "Id") if isinstance(fields, dict) else None
            if identifier is not None:
                states[identifier] = text(fields, "State")
        return states

    def _inspect(self, identifier: str) -> Container | None:
        """A container as it is now; None if it is gone, or in trouble of its own."""
        if not identifier.isalnum():
            return None
        target = f"/containers/{identifier}/json"
        status, content = self._asking.get(target, _MAX_INSPECT)
        if status != 200:
            return None
        container, parent = parse_inspect(content, self._path)
        if container.name is not None and parent is not None:
            self._parents[container.name] = parent
        return self._placed(container, parent)

    def _placed(self, container: Container, parent: str | None) -> Container:
        expected = docker_cgroup(container.id, parent, self._driver)
        cgroup = self._whereabouts.find(container.id, container.pid, expected)
        return replace(container, cgroup=cgroup, cgroup_parent=parent_of(cgroup))

    def _get(self, target: str, limit: int) -> bytes:
        status, content = self._asking.get(target, limit)
        if status != 200:
            raise status_error(self._path, target, status)
        return content

    # -- following -------------------------------------------------------------

    def _take(self, data: bytes) -> list[ContainerHappening]:
        """Whole lines become happenings; the containers they are about are looked at once."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MAX_LINE:
            raise MalformedSource(self._path, f"an event of more than {_MAX_LINE} bytes")
        parsed = [parse_event(line, self._path) for line in lines if line.strip()]
        events = [event for event in parsed if event is not None]
        gone = {event.id for event in events if event.action == "destroy"}
        there = [id_ for id_ in dict.fromkeys(event.id for event in events) if id_ not in gone]
        for identifier in there[-_MAX_LOOKED_AT:]:
            container = self._inspect(identifier)
            if container is not None and len(self.containers) < MAX_CONTAINERS:
                self.containers[identifier] = container
        return list(self._happenings(events))

    def _happenings(self, events: list[DockerEvent]) -> Iterator[ContainerHappening]:
        for event in events:
            self._since_ns = max(self._since_ns or 0, event.wall_ns + 1)
            if self._is_told(event):
                continue
            happening = _happening(event, self._as_told(event), self._runs)
            if event.action == "destroy":
                self.containers.pop(event.id, None)
            if happening is not None:
                yield happening

    def _is_told(self, event: DockerEvent) -> bool:
        """Return whether a list read since then already included this event."""
        run_ns, end_ns = self._runs.get(event.id), self._ends.get(event.id)
        if event.action == "start":
            return run_ns is not None and event.wall_ns < run_ns + SAME_NS
        if event.action == "die" and run_ns is None:
            return end_ns is not None and event.wall_ns < end_ns + SAME_NS
        return False

    def _as_told(self, event: DockerEvent) -> Container:
        """The container of an event: as it was looked at, else what the event says of it."""
        known = self.containers.get(event.id)
        if known is not None:
            return known
        container = Container("docker", event.id, name=event.name, image=event.image)
        return self._placed(container, self._parents.get(event.name or ""))


def _happening(
    event: DockerEvent, container: Container, runs: dict[str, int]
) -> ContainerHappening | None:
    """Return the event of one message; `runs` has when the present run of each id began."""
    if event.action == "start":
        if len(runs) < MAX_CONTAINERS:
            runs[event.id] = event.wall_ns
        began = replace(container, state="running", started_wall_ns=event.wall_ns, exit_status=None)
        return ContainerHappening(HappeningKind.STARTED, event.wall_ns, began)
    if event.action == "die":
        began_ns = runs.pop(event.id, None)
        ended = replace(
            container,
            state="exited",
            pid=None,
            exit_status=event.exit_status,
            started_wall_ns=began_ns,
            finished_wall_ns=event.wall_ns,
        )
        ran = None if began_ns is None else max(0, event.wall_ns - began_ns)
        return ContainerHappening(HappeningKind.EXITED, event.wall_ns, ended, ran)
    if event.action == "destroy":
        runs.pop(event.id, None)
        return ContainerHappening(
            HappeningKind.REMOVED, event.wall_ns, replace(container, state="removed", pid=None)
        )
    return None


def _seconds(wall_ns: int) -> str:
    return f"{wall_ns // SECOND_NS}.{wall_ns % SECOND_NS:09d}"
