"""Docker's containers without its API: `containers/ID/config.v2.json` under its data root.

The daemon writes the file at every start and end of a container. It does not
say which cgroup driver is used; where the process lives, the kernel does.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from nodescope.errors import MalformedSource, SourceAbsent, SourceError, source_error
from nodescope.sources.containers.cgroups import Whereabouts, docker_cgroup, parent_of
from nodescope.sources.containers.container import MAX_CONTAINERS, MAX_FILE, Container
from nodescope.sources.containers.docker import container_of
from nodescope.sources.places import Places
from nodescope.wire.json_fields import parse_object, read_bounded, text

_DATA_ROOTS = ("/var/lib/docker", "/var/snap/docker/common/var-lib-docker")


def find_data_root(places: Places) -> Path:
    """Where docker keeps its state: as `daemon.json` says, or in a usual place."""
    try:
        content = read_bounded(places.inside("/etc/docker/daemon.json"), MAX_FILE)
        configured = text(parse_object(content, "daemon.json"), "data-root")
    except SourceError:
        configured = None  # absent on most nodes; a broken one keeps dockerd from starting
    for candidate in (configured, *_DATA_ROOTS):
        if candidate is not None and places.inside(f"{candidate}/containers").is_dir():
            return places.inside(candidate)
    raise SourceAbsent(places.inside(_DATA_ROOTS[0]), "no containers of docker")


def parse_config(config: bytes, host: bytes, path: str | Path) -> tuple[Container, str | None]:
    """A container from its two files, and the cgroup parent it asked for."""
    return container_of(parse_object(config, path), path, parse_object(host, path))


class DockerFiles:
    """Reads the files again when they changed."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._whereabouts = Whereabouts(places.proc)
        self._seen: dict[str, tuple[int, Container]] = {}

    def read(self) -> dict[str, Container]:
        """All containers whose files can be read, by id."""
        folder = find_data_root(self._places) / "containers"
        try:
            names = sorted(os.listdir(folder))[:MAX_CONTAINERS]
        except OSError as error:
            raise source_error(folder, error) from error
        seen = {}
        for name in names:
            try:
                seen[name] = self._read(folder / name, self._seen.get(name))
            except (SourceAbsent, MalformedSource):
                continue  # being made, being removed or being written
        self._seen = seen
        return {container.id: container for _, container in seen.values()}

    def _read(self, folder: Path, before: tuple[int, Container] | None) -> tuple[int, Container]:
        path = folder / "config.v2.json"
        try:
            changed_ns = path.stat().st_mtime_ns
        except OSError as error:
            raise source_error(path, error) from error
        if before is not None and before[0] == changed_ns:
            return before
        config = read_bounded(path, MAX_FILE)
        host = read_bounded(folder / "hostconfig.json", MAX_FILE)
        container, parent = parse_config(config, host, path)
        systemd = parent is not None and parent.endswith(".slice")
        driver = "systemd" if systemd else "cgroupfs" if parent is not None else None
        expected = docker_cgroup(container.id, parent, driver)
        cgroup = self._whereabouts.find(container.id, container.pid, expected)
        return changed_ns, replace(container, cgroup=cgroup, cgroup_parent=parent_of(cgroup))
