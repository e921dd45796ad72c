"""A host of its own with a real containerd and a real dockerd, for tests.

Its PID 1 lives in namespaces of its own over an overlay of this machine's root
(`container_host.sh`), its cgroups under one cgroup of this machine: whatever
happens in it ends with it.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.own_cgroups import join_cgroups, make_cgroups, remove_cgroups
from tests.waiting import wait_for

import nodescope
from nodescope.sources.places import Places

Value = TypeVar("Value")

_SCRIPT = Path(__file__).with_name("container_host.sh")
_START_S = 300.0
_NUMBERS = itertools.count()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_START_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass(frozen=True)
class ContainerHost:
    """The host, seen from this machine: `pid` is its PID 1, `cgroup` where its tree stands.

    `outer` started it, and ends when a daemon does.
    """

    pid: int
    cgroup: str
    log: Path
    outer: subprocess.Popen[bytes]

    @property
    def places(self) -> Places:
        return Places(root=Path(f"/proc/{self.pid}/root"))

    def wait_for(self, condition: Callable[[], Value | None], what: str, seconds: float) -> Value:
        """Return the first true answer; fail at once when a daemon has ended."""
        return wait_for(condition, what, seconds, process=self.outer, log=self.log)

    def docker(self, method: str, path: str, body: object = None, raw: bytes = b"") -> Any:
        """One request to the real dockerd; its answer, decoded."""
        connection = _UnixConnection(f"/proc/{self.pid}/root/run/docker.sock")
        try:
            sent = raw or (b"" if body is None else json.dumps(body).encode())
            kind = "application/x-tar" if raw else "application/json"
            connection.request(method, path, sent, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise AssertionError(f"dockerd: {method} {path}: {answer.status} {text!r}")
        return json.loads(text) if text.startswith((b"{", b"[")) else text

    def docker_run(
        self, name: str, command: list[str], *, restart: str = "no", parent: str = ""
    ) -> str:
        """Create and start a container; its id."""
        made = self.docker(
            "POST",
            f"/containers/create?name={name}",
            {
                "Image": "looper",
                "Cmd": command,
                "HostConfig": {
                    "NetworkMode": "none",
                    "CgroupParent": parent,
                    "RestartPolicy": {"Name": restart},
                },
            },
        )
        self.docker("POST", f"/containers/{made['Id']}/start")
        return str(made["Id"])

    def docker_remove(self, identifier: str) -> None:
        self.docker("DELETE", f"/containers/{identifier}?force=1")

    def run(self, *command: str, check: bool = True) -> str:
        """A command inside the host."""
        inside = ["nsenter", "-t", str(self.pid), "-a", "--wd=/", *command]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=_START_S, check=False)
        if check and done.returncode:
            raise AssertionError(f"{command}: {done.returncode} {done.stderr}")
        return done.stdout

    def ctr(self, *arguments: str, namespace: str = "k8s.io", check: bool = True) -> str:
        return self.run("ctr", "-n", namespace, *arguments, check=check)


@contextlib.contextmanager
def container_host(folder: Path) -> Iterator[ContainerHost]:
    """Start it, wait until both daemons answer, and leave nothing of it behind."""
    name = f"nodescope-containers-{os.getpid()}-{next(_NUMBERS)}"
    made = make_cgroups(name)
    log = folder / "log"
    work = folder / "work"
    work.mkdir()
    try:
        outer = start_host(work, log, "--cgroup", enter=partial(join_cgroups, made))
        try:
            host = ContainerHost(wait_for_first_process(outer, log), f"/{name}", log, outer)
            _wait_until_ready(host)
            yield host
        finally:
            outer.kill()
            outer.wait()
    finally:
        wait_for(partial(remove_cgroups, made), "the host's cgroups are removed", _START_S)


def start_host(
    work: Path, log: Path, *options: str, enter: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """Start the host in new namespaces, those of `options` too; `enter` runs before it."""
    command = ["setpriv", "--pdeathsig", "KILL"]  # a killed test run leaves no daemon behind
    command += ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--uts", "--ipc", "--net"]
    command += [*options, "bash", str(_SCRIPT), str(work), *map(str, _own_folders())]
    with log.open("wb") as out:
        return subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
            preexec_fn=enter,
        )  # fmt: skip


def _own_folders() -> list[Path]:
    """Return what our commands need inside: this checkout and its Python, outer folders first."""
    ours = (_SCRIPT.parents[1], nodescope.__path__[0], sys.prefix, sys.base_prefix)
    return sorted({Path(folder).resolve() for folder in ours})


def wait_for_first_process(outer: subprocess.Popen[bytes], log: Path) -> int:
    """Return the pid of the host's PID 1."""
    children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")

    def child() -> int:
        try:
            return int(children.read_text().split()[0])
        except (OSError, IndexError):
            return 0

    return wait_for(child, "the host has a first process", _START_S, process=outer, log=log)


def _wait_until_ready(host: ContainerHost) -> None:
    def ready() -> bool:
        try:
            return bool(host.docker("GET", "/_ping") == b"OK")
        except OSError:
            return False

    host.wait_for(ready, "dockerd answers", _START_S)
    image = host.places.inside("/opt/rootfs.tar").read_bytes()
    host.docker("POST", "/images/create?fromSrc=-&repo=looper", raw=image)
