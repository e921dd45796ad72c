"""Podman's and CRI-O's containers by their files; neither has a daemon to ask.

`overlay-containers/containers.json` lists them with their names, `userdata/pidfile`
says which runs. How one ended stands in podman's log of events, if it keeps one in
a file (`events_logger = "file"`); with the journal as its log, only that it ended
is told. Podman counts restarts in a database that only it reads. Asking its socket
would start a service that was not running, so it is left alone. Containers of
other users than root are not looked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope.errors import MalformedSource, SourceError, source_error
from nodescope.quantities import SECOND_NS
from nodescope.records.json import JsonObject
from nodescope.sources.containers.cgroups import Whereabouts, parent_of
from nodescope.sources.containers.container import (
    MAX_CONTAINERS,
    MAX_FILE,
    Container,
    ContainerHappening,
    HappeningKind,
    find_happenings,
)
from nodescope.sources.containers.containerd import read_start_ns
from nodescope.sources.containers.oci import Identity, parse_spec
from nodescope.sources.places import Places
from nodescope.wire.json_fields import (
    inner,
    number_of,
    parse_json,
    parse_object,
    read_bounded,
    text,
    time_of,
    whole,
)

STORAGE = "/var/lib/containers/storage"
RUN = "/run/containers/storage"
EVENTS = "/run/libpod/events/events.log"
_DRIVERS = ("overlay", "vfs", "btrfs", "zfs")
_MAX_LIST = 16 << 20
_LATE_NS = SECOND_NS  # a process's start is told in ticks


def parse_containers(content: bytes, path: str | Path) -> list[Container]:
    """`containers.json`: ids and names; whose they are stands in `metadata`, which is JSON."""
    listed = parse_json(content, path)
    if not isinstance(listed, list):
        raise MalformedSource(path, "not a list of containers")
    return [
        _container(each, path)
        for each in listed[:MAX_CONTAINERS]
        if isinstance(each, dict) and _is_id(text(each, "id"))
    ]


def _is_id(identifier: str | None) -> bool:
    """Only what can be the name of a folder: it will be looked for by it."""
    return identifier is not None and identifier.isalnum()


def _container(fields: JsonObject, path: str | Path) -> Container:
    names = fields.get("names")
    first = names[0] if isinstance(names, list) and names else None
    try:
        metadata = parse_object((text(fields, "metadata") or "{}").encode(), path)
    except MalformedSource:
        metadata = {}  # cut, or of another version
    in_pod = text(metadata, "pod-name") is not None  # as CRI-O writes it
    return Container(
        "cri-o" if in_pod else "podman",
        text(fields, "id") or "",
        name=text(metadata, "name") or (first if isinstance(first, str) else None),
        image=text(metadata, "image-name"),
        state="created",
        restarts=whole(inner(metadata, "metadata"), "attempt"),
    )


@dataclass(frozen=True, slots=True)
class PodmanEvent:
    """A start, an end or a removal, as podman's log has it."""

    kind: HappeningKind
    wall_ns: int
    id: str
    name: str | None
    image: str | None
    exit_status: int | None


_STATUS = {
    "start": HappeningKind.STARTED,
    "died": HappeningKind.EXITED,
    "remove": HappeningKind.REMOVED,
}


def parse_event(line: bytes, path: str | Path) -> PodmanEvent | None:
    """One line of the log; None if it is about something else."""
    fields = parse_object(line, path)
    kind = _STATUS.get(text(fields, "Status") or "")
    identifier, wall_ns = text(fields, "ID"), time_of(text(fields, "Time"))
    if text(fields, "Type") != "container" or kind is None or identifier is None:
        return None
    if wall_ns is None:
        raise MalformedSource(path, "an event without a time")
    code = whole(fields, "ContainerExitCode") if kind is HappeningKind.EXITED else None
    image = text(fields, "Image")
    return PodmanEvent(kind, wall_ns, identifier, text(fields, "Name"), image, code)


class PodmanFiles:
    """Podman, followed by what it leaves behind."""

    def __init__(self, places: Places) -> None:
        self.containers: dict[str, Container] = {}
        self._places = places
        self._whereabouts = Whereabouts(places.proc)
        self._list: tuple[Path, int, list[Container]] | None = None
        self._log = places.inside(EVENTS)
        self._read_to: tuple[int, int] | None = None  # inode and offset of the log
        self._runs: dict[str, int] = {}  # when the present run of an id began
        self._first = True

    def poll(self, wall_ns: int) -> list[ContainerHappening]:
        """Return events from the event log, or derived from two lists where there is no log."""
        driver, listed = self._read_list()
        before = self.containers
        after = {each.id: self._with_run(each, driver) for each in listed}
        events = self._read_events()
        if events is None:
            found = [] if self._first else find_happenings(before, after, wall_ns)
        else:
            known = {**before, **after}
            found = [_happening(event, known, self._runs) for event in events]
            for happening in found:
                if happening.kind is HappeningKind.EXITED and happening.container.id in after:
                    after[happening.container.id] = happening.container
        self.containers, self._first = after, False
        return found

    def close(self) -> None:
        """Nothing is held open."""

    def _read_list(self) -> tuple[str, list[Container]]:
        error: OSError | None = None
        path = self._places.inside(STORAGE)
        for driver in _DRIVERS:
            path = self._places.inside(f"{STORAGE}/{driver}-containers/containers.json")
            try:
                changed_ns = path.stat().st_mtime_ns
            except OSError as raised:
                error = error or raised
                continue
            if self._list is None or self._list[:2] != (path, changed_ns):
                self._list = path, changed_ns, parse_containers(read_bounded(path, _MAX_LIST), path)
            return driver, self._list[2]
        assert error is not None
        raise source_error(path, error)

    def _with_run(self, container: Container, driver: str) -> Container:
        """A listed container as it runs now, or as it was last seen."""
        before = self.containers.get(container.id)
        pid, started = self._process(container.id, driver)
        if before is not None and before.pid == pid:
            return before
        path = f"{STORAGE}/{driver}-containers/{container.id}/userdata/config.json"
        identity = _read_identity(self._places.inside(path))
        cgroup = self._whereabouts.find(container.id, pid, identity.cgroup)
        container = replace(
            container,
            name=identity.name or container.name,
            namespace=identity.namespace,
            pod=identity.pod,
            cgroup=cgroup,
            cgroup_parent=parent_of(cgroup),
        )
        if pid is not None:
            return replace(container, state="running", pid=pid, started_wall_ns=started)
        if before is not None:
            return replace(before, state="exited", pid=None)
        return container

    def _process(self, identifier: str, driver: str) -> tuple[int | None, int | None]:
        """The process that runs and when it began; a pid used again is not its own."""
        path = self._places.inside(f"{RUN}/{driver}-containers/{identifier}/userdata/pidfile")
        try:
            pid = number_of(read_bounded(path, 64).decode("ascii", "replace").strip())
            written_ns = path.stat().st_mtime_ns
        except (SourceError, OSError):
            return None, None  # it never ran, or was removed
        started = None if pid is None else read_start_ns(self._places.proc, pid)
        if started is None or started > written_ns + _LATE_NS:
            return None, None
        return pid, started

    def read_recent(self, wall_ns: int, since_ns: int) -> list[ContainerHappening]:
        """Return the past events at the end of the log."""
        try:
            with open(self._log, "rb") as file:
                start = max(0, os.fstat(file.fileno()).st_size - MAX_FILE)
                file.seek(start)
                lines = file.read(MAX_FILE).split(b"\n")
        except OSError:
            return []
        events = [parse_event(line, self._log) for line in lines[bool(start) : -1] if line]
        runs: dict[str, int] = {}
        return [
            _happening(event, self.containers, runs)
            for event in events
            if event is not None and since_ns <= event.wall_ns <= wall_ns
        ]

    def _read_events(self) -> list[PodmanEvent] | None:
        """Read what was appended to the log since the last call; None if there is no log."""
        try:
            with open(self._log, "rb") as file:
                status = os.fstat(file.fileno())
                inode, offset = self._read_to or (status.st_ino, status.st_size)
                if inode != status.st_ino or offset > status.st_size:
                    offset = 0  # begun anew
                file.seek(offset)
                content = file.read(MAX_FILE)
        except OSError:
            self._read_to = None
            return None
        whole_lines, found, _ = content.rpartition(b"\n")
        if not found and len(content) == MAX_FILE:
            raise MalformedSource(self._log, f"a line of more than {MAX_FILE} bytes")
        self._read_to = status.st_ino, offset + len(whole_lines) + len(found)
        events = [parse_event(line, self._log) for line in whole_lines.splitlines() if line]
        return [event for event in events if event is not None]


def _happening(
    event: PodmanEvent, known: Mapping[str, Container], runs: dict[str, int]
) -> ContainerHappening:
    """Return the event of one log entry; `runs` has when the present run of each id began."""
    container = known.get(event.id) or Container(
        "podman", event.id, name=event.name, image=event.image
    )
    if event.kind is HappeningKind.STARTED:
        if len(runs) < MAX_CONTAINERS:
            runs[event.id] = event.wall_ns
        started = replace(container, state="running", started_wall_ns=event.wall_ns)
        return ContainerHappening(event.kind, event.wall_ns, replace(started, exit_status=None))
    began_ns = runs.pop(event.id, container.started_wall_ns)
    if event.kind is HappeningKind.REMOVED:
        return ContainerHappening(
            event.kind, event.wall_ns, replace(container, state="removed", pid=None)
        )
    ended = replace(
        container,
        state="exited",
        pid=None,
        exit_status=event.exit_status,
        started_wall_ns=began_ns,
        finished_wall_ns=event.wall_ns,
    )
    ran = None if began_ns is None else max(0, event.wall_ns - began_ns)
    return ContainerHappening(event.kind, event.wall_ns, ended, ran)


def _read_identity(path: Path) -> Identity:
    try:
        return parse_spec(read_bounded(path, MAX_FILE), path)
    except SourceError:
        return Identity()
