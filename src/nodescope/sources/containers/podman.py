"""Podman's and CRI-O's containers by their files; neither has a daemon to ask.

`overlay-containers/containers.json` lists them with their names, `userdata/pidfile`
says which runs, `libpod/exits/ID` how it ended. That is partial: podman counts
restarts and keeps old ends in a database that only it reads; asking its socket
would start a service that was not running, so it is left alone. Containers of
other users than root are not looked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nodescope.errors import MalformedSource, SourceError, source_error
from nodescope.sources.containers.cgroups import Whereabouts, parent_of
from nodescope.sources.containers.container import MAX_CONTAINERS, Container
from nodescope.sources.containers.containerd import read_start_ns
from nodescope.sources.containers.fields import (
    inner,
    number_of,
    parse_json,
    parse_object,
    read_bounded,
    text,
    whole,
)
from nodescope.sources.containers.oci import Identity, parse_spec
from nodescope.sources.places import Places

STORAGE = "/var/lib/containers/storage"
RUN = "/run/containers/storage"
EXITS = ("/run/libpod/exits", "/run/crio/exits", "/var/run/crio/exits")
_DRIVERS = ("overlay", "vfs", "btrfs", "zfs")
_MAX_LIST = 16 << 20
_MAX_FILE = 4 << 20


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


def _container(fields: Mapping[str, Any], path: str | Path) -> Container:
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


class PodmanFiles:
    """Reads what podman leaves behind."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._whereabouts = Whereabouts(places.proc)
        self._list: tuple[Path, int, list[Container]] | None = None
        self._before: dict[str, Container] = {}

    def read(self) -> dict[str, Container]:
        """All containers of root, by id."""
        driver, listed = self._read_list()
        self._before = {each.id: self._with_run(each, driver) for each in listed}
        return self._before

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
        folder = self._places.inside(f"{RUN}/{driver}-containers/{container.id}/userdata")
        pid = _read_number(folder / "pidfile")
        before = self._before.get(container.id)
        alive = pid is not None and (self._places.proc / str(pid)).is_dir()
        if alive and before is not None and before.pid == pid:
            return before
        identity = _read_identity(folder / "config.json")
        cgroup = self._whereabouts.find(container.id, pid if alive else None, identity.cgroup)
        if cgroup is None and before is not None:
            cgroup = before.cgroup
        container = replace(
            container,
            name=identity.name or container.name,
            namespace=identity.namespace,
            pod=identity.pod,
            cgroup=cgroup,
            cgroup_parent=parent_of(cgroup),
        )
        if alive and pid is not None:
            started = read_start_ns(self._places.proc, pid)
            return replace(container, state="running", pid=pid, started_wall_ns=started)
        return self._ended(container, before)

    def _ended(self, container: Container, before: Container | None) -> Container:
        for folder in EXITS:
            path = self._places.inside(f"{folder}/{container.id}")
            code = _read_number(path)
            if code is None:
                continue
            return replace(
                container,
                state="exited",
                exit_code=code,
                started_wall_ns=before.started_wall_ns if before is not None else None,
                finished_wall_ns=_changed_ns(path),
            )
        if before is not None and before.running:
            return replace(container, state="exited", started_wall_ns=before.started_wall_ns)
        return before or container


def _read_number(path: Path) -> int | None:
    try:
        return number_of(read_bounded(path, 64).decode("ascii", "replace").strip())
    except SourceError:
        return None  # absent: it does not run, or has not ended


def _read_identity(path: Path) -> Identity:
    try:
        return parse_spec(read_bounded(path, _MAX_FILE), path)
    except SourceError:
        return Identity()


def _changed_ns(path: Path) -> int | None:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None
