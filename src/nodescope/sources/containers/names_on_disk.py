"""Names of pods and containers, from the files that runtimes leave readable for anybody.

- `/var/log/pods/<namespace>_<pod>_<uid>`: the kubelet, pods by uid
- `/var/log/containers/<pod>_<namespace>_<container>-<id>.log`: the kubelet, containers by id
- `config.json` of a running bundle: containerd and cri-o, in annotations of the OCI spec
- `/var/lib/docker/containers/<id>/config.v2.json`: docker
- `/var/lib/containers/storage/overlay-containers/containers.json`: podman and cri-o

Folders are listed again when they changed; a container's own file is read once.
Names are forgotten when nobody asked for them in the last round.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from nodescope.errors import SourceError
from nodescope.sources.cgroups.owner_by_path import CgroupOwner
from nodescope.sources.containers.container import MAX_FILE
from nodescope.sources.containers.oci import identity_of_labels, parse_spec
from nodescope.sources.places import Places
from nodescope.wire.json_fields import inner, parse_json, parse_object, read_bounded, text

_MAX_ENTRIES = 20_000
_TRIES = 5  # a file may be written a moment after the cgroup was made
_BUNDLES = "/run/containerd/io.containerd.runtime.v2.task"
_CRIO = "/run/containers/storage/overlay-containers/{id}/userdata/config.json"
_STORAGE = "/var/lib/containers/storage/overlay-containers/containers.json"


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names of an owner; unknown ones are None."""

    runtime: str | None = None
    namespace: str | None = None
    pod: str | None = None
    container: str | None = None

    @property
    def known(self) -> bool:
        return self.container is not None or self.pod is not None


NOTHING = KnownNames()
Value = TypeVar("Value")


def parse_pod_folders(folders: list[str]) -> dict[str, KnownNames]:
    """Names in `/var/log/pods`, by uid. Neither namespace nor pod has an underscore."""
    found = {}
    for folder in folders[:_MAX_ENTRIES]:
        parts = folder.split("_")
        if len(parts) == 3:
            found[parts[2]] = KnownNames(None, parts[0], parts[1], None)
    return found


def parse_container_logs(logs: list[str]) -> dict[str, KnownNames]:
    """Names in `/var/log/containers`, by id."""
    found = {}
    for log in logs[:_MAX_ENTRIES]:
        pod, _, rest = log.removesuffix(".log").partition("_")
        namespace, _, rest = rest.partition("_")
        container, _, identifier = rest.rpartition("-")
        if container and len(identifier) == 64:
            found[identifier] = KnownNames(None, namespace, pod, container)
    return found


def parse_storage(content: bytes, path: str | Path) -> dict[str, KnownNames]:
    """`containers.json` of containers/storage, by id."""
    listed = parse_json(content, path)
    found = {}
    for entry in listed[:_MAX_ENTRIES] if isinstance(listed, list) else []:
        names = entry.get("names") if isinstance(entry, dict) else None
        identifier = text(entry, "id") if isinstance(entry, dict) else None
        if identifier and isinstance(names, list) and names and isinstance(names[0], str):
            found[identifier] = KnownNames(None, None, None, names[0])
    return found


def parse_docker(content: bytes, path: str | Path) -> KnownNames:
    """A docker container's `config.v2.json`."""
    config = parse_object(content, path)
    said = identity_of_labels(inner(inner(config, "Config"), "Labels"))
    name = said.name or (text(config, "Name") or "").lstrip("/") or None
    return KnownNames("docker", said.namespace, said.pod, name)


class _Changing(Generic[Value]):
    """Something read again only when the time of its last change is another."""

    def __init__(self, path: Path, read: Callable[[Path], dict[str, Value]]) -> None:
        self._path, self._read = path, read
        self._changed_ns: int | None = None
        self._value: dict[str, Value] = {}

    def get(self) -> dict[str, Value]:
        try:
            changed_ns = self._path.stat().st_mtime_ns
            if changed_ns != self._changed_ns:
                self._value = self._read(self._path)
                self._changed_ns = changed_ns
        except (OSError, SourceError):
            self._value, self._changed_ns = {}, None  # not on this node, or not for us
        return self._value


class ContainerNames:
    """Finds names, and remembers those in use."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._pods = _Changing(
            places.inside("/var/log/pods"), lambda path: parse_pod_folders(os.listdir(path))
        )
        self._logs = _Changing(
            places.inside("/var/log/containers"),
            lambda path: parse_container_logs(os.listdir(path)),
        )
        self._storage = _Changing(
            places.inside(_STORAGE), lambda path: parse_storage(read_bounded(path, MAX_FILE), path)
        )
        self._bundles: list[Path] = []
        self._found: dict[str, tuple[int, KnownNames]] = {}  # by id; how often it was looked for
        self._asked: dict[str, tuple[int, KnownNames]] = {}

    def begin(self) -> None:
        """A round begins: what is not asked for in it is forgotten at the next."""
        self._found, self._asked = self._asked, {}
        try:
            folder = self._places.inside(_BUNDLES)
            self._bundles = [folder / name for name in sorted(os.listdir(folder))]
        except OSError:
            self._bundles = []

    def find(self, owner: CgroupOwner) -> KnownNames:
        """Return the names of a cgroup's owner."""
        if owner.container_id is not None:
            names = self._find_container(owner.container_id)
            if names.pod is not None or owner.pod_uid is None:
                return names
            pod = self._pods.get().get(owner.pod_uid, NOTHING)
            return KnownNames(names.runtime, pod.namespace, pod.pod, names.container)
        if owner.pod_uid is not None:
            return self._pods.get().get(owner.pod_uid, NOTHING)
        return NOTHING

    def _find_container(self, identifier: str) -> KnownNames:
        tries, names = self._asked.get(identifier) or self._found.get(identifier, (0, NOTHING))
        if not names.known and tries < _TRIES:
            tries, names = tries + 1, self._look(identifier)
        self._asked[identifier] = (tries, names)
        return names

    def _look(self, identifier: str) -> KnownNames:
        for bundle in self._bundles:
            names = self._read_spec(bundle / identifier / "config.json", "containerd")
            if names.known:
                return names
        crio = self._read_spec(self._places.inside(_CRIO.format(id=identifier)), "cri-o")
        if crio.known:
            return crio
        path = self._places.inside(f"/var/lib/docker/containers/{identifier}/config.v2.json")
        try:
            return parse_docker(read_bounded(path, MAX_FILE), path)
        except SourceError:
            pass  # not docker's
        found = self._logs.get().get(identifier) or self._storage.get().get(identifier)
        return found or NOTHING

    def _read_spec(self, path: Path, runtime: str) -> KnownNames:
        try:
            said = parse_spec(read_bounded(path, MAX_FILE), path)
        except SourceError:
            return NOTHING  # another runtime's
        return KnownNames(runtime, said.namespace, said.pod, said.name)
