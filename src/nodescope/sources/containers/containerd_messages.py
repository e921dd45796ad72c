"""containerd's messages, as far as they are needed (github.com/containerd/containerd/api).

The numbers are those of its `.proto` files, the same since 1.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource, SourceError
from nodescope.sources.containers.oci import Identity, identity_of_labels, parse_spec
from nodescope.wire import protobuf

NAMESPACES = "/containerd.services.namespaces.v1.Namespaces/List"
CONTAINERS = "/containerd.services.containers.v1.Containers/List"
CONTAINER = "/containerd.services.containers.v1.Containers/Get"
TASKS = "/containerd.services.tasks.v1.Tasks/List"
TASK = "/containerd.services.tasks.v1.Tasks/Get"
EVENTS = "/containerd.services.events.v1.Events/Subscribe"
TOPICS = (
    "/tasks/start", "/tasks/exit", "/tasks/paused", "/tasks/resumed",
    "/containers/create", "/containers/delete",
)  # fmt: skip
SUBSCRIPTION = b"".join(protobuf.text_field(1, f'topic=="{topic}"') for topic in TOPICS)

_STATES = {1: "created", 2: "running", 3: "exited", 4: "paused", 5: "paused"}


@dataclass(frozen=True, slots=True)
class Described:
    """A container as its metadata has it."""

    id: str
    identity: Identity
    image: str | None
    restarts: int | None


@dataclass(frozen=True, slots=True)
class ContainerdEvent:
    """One event; `container` is an id, unique within its namespace only."""

    topic: str
    wall_ns: int
    namespace: str
    container: str
    pid: int | None = None
    exit_status: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A container's first process."""

    container: str
    state: str | None
    pid: int | None
    exit_status: int | None
    finished_wall_ns: int | None


def parse_namespaces(data: bytes, path: Path) -> list[str]:
    """The namespaces' names."""
    with _translated(path):
        listed = [protobuf.text(protobuf.decode(each), 1) for each in _each(data)]
    return [name for name in listed if name is not None]


def parse_containers(data: bytes, path: Path, limit: int) -> list[Described]:
    """The containers of one namespace."""
    with _translated(path):
        return [_described(each, path) for each in _each(data)[:limit]]


def parse_container(data: bytes, path: Path) -> Described:
    """One container."""
    with _translated(path):
        return _described(protobuf.content(protobuf.decode(data), 1), path)


def _described(data: bytes, path: Path) -> Described:
    fields = protobuf.decode(data)
    identifier = protobuf.text(fields, 1)
    if identifier is None:
        raise MalformedSource(path, "a container without an id")
    labels = protobuf.mapping(fields, 2)
    said = identity_of_labels(labels)
    try:
        spec = parse_spec(protobuf.content(protobuf.decode(protobuf.content(fields, 5)), 2), path)
    except SourceError:
        spec = Identity()  # not an OCI spec: some other kind of container
    count = labels.get("containerd.io/restart.count", "")
    return Described(
        identifier,
        Identity(
            name=said.name or spec.name,
            namespace=said.namespace or spec.namespace,
            pod=said.pod or spec.pod,
            cgroup=spec.cgroup,
        ),
        image=protobuf.text(fields, 3) or spec.image,
        restarts=int(count) if count.isdecimal() and len(count) < 10 else None,
    )


def parse_tasks(data: bytes, path: Path, limit: int) -> dict[str, Task]:
    """The tasks of one namespace by container."""
    with _translated(path):
        tasks = [_task(protobuf.decode(each)) for each in _each(data)[:limit]]
    return {task.container: task for task in tasks}


def _task(fields: protobuf.Message) -> Task:
    state = _STATES.get(protobuf.whole(fields, 4))
    pid = protobuf.whole(fields, 3)
    # Tasks/List gives the container's id as the process's own (field 2) only
    identifier = protobuf.text(fields, 1) or protobuf.text(fields, 2) or ""
    return Task(
        identifier,
        state,
        pid if state != "exited" and 0 < pid < 1 << 31 else None,
        protobuf.whole(fields, 9) if state == "exited" else None,
        protobuf.timestamp_ns(fields, 10) if state == "exited" else None,
    )


def parse_event(data: bytes, path: Path) -> ContainerdEvent | None:
    """One envelope; None if it is not about a container's own life."""
    with _translated(path):
        envelope = protobuf.decode(data)
        topic, namespace = protobuf.text(envelope, 3), protobuf.text(envelope, 2)
        wall_ns = protobuf.timestamp_ns(envelope, 1)
        event = protobuf.decode(protobuf.content(protobuf.decode(protobuf.content(envelope, 4)), 2))
        identifier = protobuf.text(event, 1)
        if topic not in TOPICS or namespace is None or identifier is None or wall_ns is None:
            return None
        if topic == "/tasks/start":
            pid = protobuf.whole(event, 2)
            return ContainerdEvent(topic, wall_ns, namespace, identifier, pid=pid or None)
        if topic == "/tasks/exit":
            if protobuf.text(event, 2) != identifier:
                return None  # of a process that was let in (exec)
            ended_ns = protobuf.timestamp_ns(event, 5) or wall_ns
            status = protobuf.whole(event, 4)
            return ContainerdEvent(topic, ended_ns, namespace, identifier, exit_status=status)
        return ContainerdEvent(topic, wall_ns, namespace, identifier)


def _each(data: bytes) -> list[bytes]:
    return list(protobuf.each(protobuf.decode(data), 1))


class _translated:  # noqa: N801 a context manager, used like a function
    """Turn decoding errors into `MalformedSource`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: object, _: object) -> None:
        if isinstance(error, protobuf.NotAMessage):
            raise MalformedSource(self._path, f"not a message of containerd: {error}") from None
