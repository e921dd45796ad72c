"""Containers that an image carries and that start with their engine, by the engines' files.

Docker restarts containers by `RestartPolicy` of `hostconfig.json`; podman by the policy in its
database, if `podman-restart.service` runs; a kubelet runs the pods of its manifest folder; a
quadlet (podman-systemd.unit(5)) becomes a service by podman's generator.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator

from nodescope.errors import MalformedSource
from nodescope.records.json import JsonObject
from nodescope.sources.containers.container import MAX_CONTAINERS, MAX_FILE
from nodescope.sources.containers.docker_files import parse_config
from nodescope.sources.image.boot_items import BootItem
from nodescope.sources.image.image_files import ImageFiles
from nodescope.sources.systemd.unit_syntax import Settings
from nodescope.wire.json_fields import inner, parse_object, text, whole

_DOCKER_ROOTS = ("/var/lib/docker", "/var/snap/docker/common/var-lib-docker")
_DOCKER_UNITS = ("docker.service", "docker.socket", "snap.docker.dockerd.service")
_PODMAN = "/var/lib/containers/storage"
_PODMAN_UNITS = ("podman-restart.service",)
_QUADLETS = ("/etc/containers/systemd", "/usr/share/containers/systemd")
_QUADLET_KINDS = (".container", ".pod", ".kube")
_MANIFESTS = "/etc/kubernetes/manifests"
_KUBELET_CONFIGS = ("/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet/kubelet-config.json")
_KUBELET_UNITS = ("kubelet.service",)
_CONTAINERD = "/var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db"
_STATIC_PATH = re.compile(r"""["']?staticPodPath["']?\s*:\s*["']?(/[^\s"',]+)""")
_STARTED = ("always", "unless-stopped", "on-failure")


def read_containers(files: ImageFiles, missing: list[str]) -> Iterator[BootItem]:
    """Return containers that start with their engine; what cannot be read goes into `missing`."""
    yield from _docker(files, missing)
    yield from _podman(files, missing)
    yield from _quadlets(files)
    yield from _static_pods(files)
    if files.size(_CONTAINERD) > 64 << 10:  # an empty one has 32 KiB
        missing.append(f"{_CONTAINERD}: containerd's own database is not readable here")


def _docker(files: ImageFiles, missing: list[str]) -> Iterator[BootItem]:
    try:
        configured = text(
            parse_object(files.read("/etc/docker/daemon.json") or b"", ""), "data-root"
        )
    except MalformedSource:
        configured = None
    seen = set()
    for root in filter(None, (configured, *_DOCKER_ROOTS)):
        folder = f"{root}/containers"
        if (real := files.resolve(folder)) in seen:
            continue
        seen.add(real)
        for name in files.names(folder)[:MAX_CONTAINERS]:
            path = f"{folder}/{name}/config.v2.json"
            config = files.read(path, MAX_FILE)
            host = files.read(f"{folder}/{name}/hostconfig.json", MAX_FILE)
            if config is None or host is None:
                continue  # never finished, or removed
            try:
                item = parse_docker_container(config, host, path)
            except MalformedSource as error:
                missing.append(str(error))
                continue
            if item is not None:
                yield item


def parse_docker_container(config: bytes, host: bytes, path: str) -> BootItem | None:
    """Return a container that dockerd starts when it starts; None for one that it leaves alone."""
    container, _ = parse_config(config, host, path)
    policy = text(inner(parse_object(host, path), "RestartPolicy"), "Name") or "no"
    fields = parse_object(config, path)
    if policy == "unless-stopped" and fields.get("HasBeenManuallyStopped") is True:
        return None
    if policy == "on-failure" and not whole(inner(fields, "State"), "ExitCode"):
        return None
    if policy not in _STARTED:
        return None
    detail = f"image {container.image or '?'}, restart policy {policy}"
    return BootItem("container", container.subject, path, detail, engines=_DOCKER_UNITS)


def _podman(files: ImageFiles, missing: list[str]) -> Iterator[BootItem]:
    database = f"{_PODMAN}/db.sql"
    if files.size(f"{_PODMAN}/libpod/bolt_state.db"):
        missing.append(f"{_PODMAN}/libpod/bolt_state.db: podman's older database is not readable")
    if not files.size(database):
        return
    location = f"{files.resolve(database).absolute().as_uri()}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(location, uri=True)
        try:
            found = connection.execute(
                "SELECT JSON FROM ContainerConfig LIMIT ?", (MAX_CONTAINERS,)
            )
            rows = [json.loads(row) for (row,) in found]
        finally:
            connection.close()
    except (sqlite3.Error, ValueError, TypeError) as error:
        missing.append(f"{database}: {str(error)[:200]}")
        return
    for fields in rows:
        if isinstance(fields, dict) and (item := parse_podman_container(fields, database)):
            yield item


def parse_podman_container(fields: JsonObject, path: str) -> BootItem | None:
    """Return a container that `podman-restart.service` starts; None for any other."""
    policy = text(fields, "restart_policy") or "no"
    if policy not in ("always", "unless-stopped"):
        return None
    name = text(fields, "name") or text(fields, "id") or "?"
    image = text(fields, "rootfsImageName") or "?"
    detail = f"image {image}, restart policy {policy}"
    return BootItem("container", name, path, detail, engines=_PODMAN_UNITS)


def _quadlets(files: ImageFiles) -> Iterator[BootItem]:
    for folder in _QUADLETS:
        for name in files.names(folder):
            stem, _, suffix = name.rpartition(".")
            if f".{suffix}" not in _QUADLET_KINDS or not stem:
                continue
            settings = Settings()
            settings.read(files.read(f"{folder}/{name}") or b"")
            wanted = settings.words("Install", "WantedBy") + settings.words("Install", "RequiredBy")
            if wanted:
                service = f"{stem}{'-pod' if suffix == 'pod' else ''}.service"
                image = settings.last("Container", "Image") or suffix
                detail = f"{image}, wanted by {' '.join(wanted)}"
                yield BootItem("quadlet", service, f"{folder}/{name}", detail)


def _static_pods(files: ImageFiles) -> Iterator[BootItem]:
    folders = [_MANIFESTS]
    for path in _KUBELET_CONFIGS:
        folders += _STATIC_PATH.findall(files.read_text(path))
    for folder in dict.fromkeys(folders):
        for name in files.names(folder):
            if name.endswith((".yaml", ".yml", ".json", ".manifest")) and not name.startswith("."):
                path = f"{folder}/{name}"
                detail = "a pod that the kubelet runs by itself"
                yield BootItem("static pod", path, path, detail, engines=_KUBELET_UNITS)
