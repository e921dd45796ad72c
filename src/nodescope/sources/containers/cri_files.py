"""containerd's containers without its API, as its CRI plugin and its shims leave them.

`…/io.containerd.grpc.v1.cri/containers/ID/status` has times and the exit code; the
bundle under `/run` has names and the cgroup, but only while the task exists.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from nodescope.errors import SourceError, source_error
from nodescope.sources.containers.cgroups import Whereabouts, parent_of
from nodescope.sources.containers.container import MAX_CONTAINERS, MAX_FILE, Container
from nodescope.sources.containers.oci import POD_SANDBOX, Identity, parse_spec
from nodescope.sources.places import Places
from nodescope.wire.json_fields import parse_object, process, read_bounded, whole

STATUS = "/var/lib/containerd/io.containerd.grpc.v1.cri/containers"
BUNDLES = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"


def parse_status(content: bytes, identifier: str, path: str | Path) -> Container:
    """A container by its `status` file; times are nanoseconds, 0 where there is none."""
    fields = parse_object(content, path)
    started, finished = whole(fields, "StartedAt") or None, whole(fields, "FinishedAt") or None
    if finished is not None:
        state = "exited"
    else:
        state = "created" if started is None else "running"
    return Container(
        "containerd",
        identifier,
        state=state,
        pid=process(fields, "Pid") if state == "running" else None,
        exit_status=whole(fields, "ExitCode") if state == "exited" else None,
        started_wall_ns=started,
        finished_wall_ns=finished,
    )


class CriFiles:
    """Reads status files again when they changed; keeps names it has seen."""

    def __init__(self, places: Places) -> None:
        self._status = places.inside(STATUS)
        self._bundles = places.inside(BUNDLES)
        self._whereabouts = Whereabouts(places.proc)
        self._seen: dict[str, tuple[int, Container]] = {}

    def read(self) -> dict[str, Container]:
        """All containers that have a status, by id."""
        try:
            names = sorted(os.listdir(self._status))[:MAX_CONTAINERS]
        except OSError as error:
            raise source_error(self._status, error) from error
        seen = {}
        for name in names:
            try:
                found = self._read(name)
            except SourceError:
                continue  # being made, being removed or being written
            if found is not None:
                seen[name] = found
        self._seen = seen
        return {container.id: container for _, container in seen.values()}

    def _read(self, name: str) -> tuple[int, Container] | None:
        path = self._status / name / "status"
        before = self._seen.get(name)
        try:
            changed_ns = path.stat().st_mtime_ns
        except OSError as error:
            raise source_error(path, error) from error
        if before is not None and before[0] == changed_ns:
            return before
        container = parse_status(read_bounded(path, MAX_FILE), name, path)
        identity = self._identity(name)
        if identity.name == POD_SANDBOX:
            return None
        known = before[1] if before is not None else container
        cgroup = self._whereabouts.find(name, container.pid, identity.cgroup) or known.cgroup
        return changed_ns, replace(
            container,
            name=identity.name or known.name,
            image=identity.image or known.image,
            namespace=identity.namespace or known.namespace,
            pod=identity.pod or known.pod,
            cgroup=cgroup,
            cgroup_parent=parent_of(cgroup),
        )

    def _identity(self, name: str) -> Identity:
        path = self._bundles / name / "config.json"
        try:
            return parse_spec(read_bounded(path, MAX_FILE), path)
        except SourceError:
            return Identity()  # its task is gone
