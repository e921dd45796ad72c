"""Containers as rows of `containers`, and what happened to them as events."""

from __future__ import annotations

from nodescope.judgement.container_loops import ContainerLoop
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.records.details import DeclaredDetails, read_details
from nodescope.records.event import Event
from nodescope.records.event_details import (
    ContainerDetails,
    ContainerExitDetails,
    ContainerLoopDetails,
    ContainerStartDetails,
)
from nodescope.records.node_tables import ContainerRow
from nodescope.sources.containers.container import Container

_DETAILS = (
    "runtime", "id", "name", "image", "restarts", "cgroup", "cgroup_parent", "namespace", "pod",
)  # fmt: skip


def container_row(container: Container, time_ns: int) -> ContainerRow:
    """Return a row of `containers`."""
    return ContainerRow(
        time_ns=time_ns,
        runtime=container.runtime,
        id=container.id,
        name=container.name,
        image=container.image,
        state=container.state,
        pid=container.pid,
        exit_status=container.exit_status,
        restarts=container.restarts,
        started_wall_ns=container.started_wall_ns,
        finished_wall_ns=container.finished_wall_ns,
        cgroup=container.cgroup,
        cgroup_parent=container.cgroup_parent,
        namespace=container.namespace,
        pod=container.pod,
    )


def started_event(container: Container, time_ns: int, replaces: str | None = None) -> Event:
    """Return the event of a first start; `replaces` is the id that had its name before."""
    message = f"started from {container.image or 'an image not known'}"
    if replaces is not None:
        message += f", in the place of {replaces[:12]}"
    details = _details(ContainerStartDetails, container, replaces=replaces)
    return Event(time_ns, "container_started", container.subject, message, details=details)


def restarted_event(container: Container, time_ns: int) -> Event:
    """Return the event of a container that is started again under its id."""
    count = "" if container.restarts is None else f" (restart {container.restarts})"
    details = _details(ContainerDetails, container)
    message = f"started again{count}"
    return Event(time_ns, "container_restart", container.subject, message, details=details)


def ended_event(container: Container, ran_ns: int | None, time_ns: int) -> Event:
    """Return the event of an end, after a run of that length if it is known."""
    message = "ended"
    if container.exit_status is not None:
        message += f" with exit code {container.exit_status}"
    if ran_ns is not None:
        message += f" after {format_duration(ran_ns)}"
    details = _details(
        ContainerExitDetails,
        container,
        exit_status=container.exit_status,
        ran_s=None if ran_ns is None else round(ran_ns / SECOND_NS, 3),
    )
    return Event(time_ns, "container_exit", container.subject, message, details=details)


def loop_event(loop: ContainerLoop, time_ns: int) -> Event:
    """Return the event of a container that was found to loop."""
    details = ContainerLoopDetails(
        runtime=loop.runtime,
        starts=loop.times,
        ids=loop.ids,
        failures=loop.failures,
        exit_statuses=loop.exit_statuses,
        by="image" if loop.by_image else "name",
        per_minute=None if loop.per_minute is None else round(loop.per_minute, 2),
        cgroup_parent=loop.cgroup_parent,
    )
    message = f"began to loop: {loop.describe()}"
    return Event(time_ns, "container_loop", loop.name, message, details=details)


def _details(
    declared: type[DeclaredDetails], container: Container, **more: str | float | None
) -> DeclaredDetails:
    return read_details(declared, {**{name: getattr(container, name) for name in _DETAILS}, **more})
