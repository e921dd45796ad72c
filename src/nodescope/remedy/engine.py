"""A container engine that a remedy asks and changes: dockerd or podman, over its socket.

Podman answers docker's API as well. Its service is started by its socket when somebody asks;
the recorder leaves it alone for that reason, a remedy of a container of its has to ask.
A container is named by its id in every change: a name may belong to another one by then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from nodescope.errors import RemedyError, SourceAbsent, SourceError
from nodescope.records.json import Json, JsonObject
from nodescope.remedy.node_access import NodeAccess
from nodescope.sources.containers.runtimes import find_docker_socket
from nodescope.wire.http import HttpConnection, status_error
from nodescope.wire.json_fields import inner, parse_json, parse_object, text

ENGINES = ("docker", "podman")
_PODMAN = "run/podman/podman.sock"
_MAX_ANSWER = 32 << 20
_ASK_S = 10.0
_STOP_S = 30  # until the engine kills it
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


class Engine:
    """One engine; each request has a connection of its own."""

    def __init__(self, runtime: str, path: Path) -> None:
        self.runtime = runtime
        self.path = path

    def inspect(self, name: str) -> JsonObject | None:
        """Return everything that the engine knows of a container; None if there is none."""
        if not name or not _NAME_CHARACTERS.issuperset(name):
            return None  # it could be no container's, and must not become a path
        target = f"/containers/{name}/json"
        status, content = self._get(target)
        if status == 404:
            return None
        if status != 200:
            raise status_error(self.path, target, status)
        return parse_object(content, self.path)

    def list_running(self) -> list[JsonObject]:
        """Return the inspections of the containers that run, or wait to be restarted."""
        target = "/containers/json"
        status, content = self._get(target)
        if status != 200:
            raise status_error(self.path, target, status)
        listed = parse_json(content, self.path)
        ids = [text(each, "Id") for each in listed if isinstance(each, dict)]
        found = (self.inspect(each) for each in ids if each is not None)
        return [each for each in found if each is not None]

    def stop(self, identifier: str, within_s: int = _STOP_S) -> None:
        """Stop a container: its stop signal, and after a time a kill, as the engine does it."""
        # 304: it did not run.
        self._post(f"/containers/{identifier}/stop?t={within_s}", None, within_s + _ASK_S, (304,))

    def start(self, identifier: str) -> None:
        """Start a container."""
        self._post(f"/containers/{identifier}/start", None, 6 * _ASK_S, (304,))

    def pause(self, identifier: str) -> None:
        """Freeze a container that runs."""
        self._post(f"/containers/{identifier}/pause", None, _ASK_S, ())

    def update(self, identifier: str, changes: Mapping[str, Json]) -> None:
        """Change limits or the restart policy of a container."""
        self._post(f"/containers/{identifier}/update", changes, 3 * _ASK_S, ())

    def _post(
        self, target: str, body: Mapping[str, Json] | None, timeout_s: float, also: tuple[int, ...]
    ) -> None:
        sent = b"" if body is None else json.dumps(body).encode()
        with closing(HttpConnection(self.path, timeout_s)) as connection:
            status, content = connection.post(target, sent, _MAX_ANSWER)
        if not 200 <= status < 300 and status not in also:
            raise RemedyError(f"{self.runtime} refused: {_message(content) or status}")

    def _get(self, target: str) -> tuple[int, bytes]:
        with closing(HttpConnection(self.path, _ASK_S)) as connection:
            return connection.get(target, _MAX_ANSWER)


def _message(content: bytes) -> str | None:
    try:
        said = parse_object(content, "answer")
    except SourceError:
        return None
    return text(said, "message") or text(said, "cause")


def open_engine(node: NodeAccess, runtime: str | None) -> Engine:
    """Return the engine of a runtime; `SourceAbsent` if it cannot be asked to change anything."""
    # The engine beside that systemd: not this machine's own, if another one was pointed at.
    places = node.engine_places
    if runtime in (None, "docker"):
        return Engine("docker", find_docker_socket(places))
    if runtime == "podman":
        return Engine("podman", places.inside(_PODMAN))
    raise SourceAbsent(
        str(runtime), f"containers of {runtime} are changed where they are declared, not here"
    )


@contextmanager
def as_remedy_errors() -> Iterator[None]:
    """Raise what the engine's socket says as an error of the step."""
    try:
        yield
    except SourceError as error:
        raise RemedyError(str(error), hint=error.hint) from error


def container_name(inspected: JsonObject) -> str:
    """Return the name of an inspected container, else its id."""
    return (text(inspected, "Name") or "").lstrip("/") or text(inspected, "Id") or ""


def labels_of(inspected: JsonObject) -> JsonObject:
    """Return the labels of an inspected container."""
    return inner(inner(inspected, "Config"), "Labels")
