from __future__ import annotations

import io
import json
import shutil
import socketserver
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import ClassVar

import pytest

from nodescope.errors import UsageError
from nodescope.lab import docker_guest
from nodescope.lab.docker_guest import DockerGuest


class Answers(BaseHTTPRequestHandler):
    """A daemon that creates every container but one."""

    asked: ClassVar[list[tuple[str, object]]] = []

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.asked.append((self.path, json.loads(self.rfile.read(length) or b"null")))
        refused = self.path.endswith("name=taken")
        text = b'{"message": "in use"}' if refused else b'{"Id": "5"}'
        self.send_response(409 if refused else 201)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 as the base has it
        """Say nothing."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DockerGuest]:
    Answers.asked.clear()
    path = tmp_path / "socket"
    with socketserver.ThreadingUnixStreamServer(str(path), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        docker = object.__new__(DockerGuest)  # without waiting for a guest
        docker.path = path
        yield docker
        server.shutdown()


def test_a_container_is_created_and_started(daemon: DockerGuest) -> None:
    daemon.run("web", ["sh", "-c", "exit 3"], restart="always")
    (created, body), (started, _) = Answers.asked
    assert created == "/containers/create?name=web"
    assert started == "/containers/web/start"
    assert isinstance(body, dict)
    assert body["Cmd"] == ["sh", "-c", "exit 3"]
    assert body["HostConfig"]["RestartPolicy"] == {"Name": "always"}


def test_what_the_daemon_refuses_is_said_in_its_words(daemon: DockerGuest) -> None:
    with pytest.raises(UsageError, match=r"409 .*in use"):
        daemon.run("taken", ["true"])


def test_the_image_has_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "busybox"
    program.write_bytes(b"program")
    monkeypatch.setattr(shutil, "which", lambda name: str(program))
    with tarfile.open(fileobj=io.BytesIO(docker_guest._pack_image())) as tar:
        assert tar.getmember("bin/sh").linkname == "busybox"
        content = tar.extractfile("bin/busybox")
        assert content is not None
        assert content.read() == b"program"
