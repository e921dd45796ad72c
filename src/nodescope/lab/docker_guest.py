"""A real dockerd and containerd as units of the lab's systemd, and requests to them.

Images, layers and containers lie on a tmpfs of the guest. The image is this machine's
busybox, which is static, and nothing else.
"""

from __future__ import annotations

import http.client
import io
import json
import shutil
import socket
import tarfile
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.lab import guest
from nodescope.lab.guest import Guest
from nodescope.lab.processes import wait_until_ready
from nodescope.lab.unit_files import unit_file
from nodescope.records.json import Json

IMAGE = "lab"
_SOCKET = "run/docker.sock"
_STATE = "/run/lab-containers"
_LINKS = ("sh", "sleep", "true", "false")
_SETTINGS = ("Delegate=yes", "KillMode=process", "Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin")
UNITS = {
    "containerd.service": unit_file(
        f"/usr/bin/env containerd --config /dev/null --root {_STATE}/containerd",
        *_SETTINGS,
    ),
    "docker.service": unit_file(
        "/usr/bin/env dockerd --bridge none --iptables=false --ip6tables=false "
        f"--storage-driver vfs --data-root {_STATE}/docker --host unix:///{_SOCKET} "
        "--containerd /run/containerd/containerd.sock",
        "Restart=on-failure", "RestartSec=0.3", *_SETTINGS,
    ),
}  # fmt: skip


def require() -> None:
    """Refuse where there is no dockerd to run, or nothing to run in it."""
    guest.require()
    for program in ("dockerd", "containerd", "runc"):
        if shutil.which(program) is None:
            raise UsageError(f"{program} is not installed", hint="Debian: `apt install docker.io`")
    if shutil.which("busybox") is None:
        raise UsageError("busybox is not installed", hint="Debian: `apt install busybox-static`")


class DockerGuest:
    """The daemon in a guest, once it answers."""

    def __init__(self, inside: Guest) -> None:
        self.path = Path(f"/proc/{inside.pid}/root/{_SOCKET}")
        wait_until_ready(inside.process, "dockerd", self._answers)
        self.ask("POST", f"/images/create?fromSrc=-&repo={IMAGE}", raw=_pack_image())

    def _answers(self) -> bool:
        try:
            return self.ask("GET", "/_ping") == "OK"
        except (OSError, http.client.HTTPException):
            return False

    def ask(self, method: str, path: str, body: Json = None, raw: bytes = b"") -> Json:
        """Make one request; refuse when dockerd does."""
        connection = _UnixConnection(self.path)
        try:
            kind = "application/x-tar" if raw else "application/json"
            connection.request(method, path, raw or json.dumps(body), {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        if answer.status >= 400:
            raise UsageError(f"dockerd refused {method} {path}: {answer.status} {text.strip()}")
        try:
            decoded: Json = json.loads(text)
        except ValueError:
            return text
        return decoded

    def run(self, name: str, command: list[str], *, restart: str = "no") -> None:
        """Create a container and start it."""
        settings: Json = {"NetworkMode": "none", "RestartPolicy": {"Name": restart}}
        body: Json = {"Image": IMAGE, "Cmd": [*command], "HostConfig": settings}
        self.ask("POST", f"/containers/create?name={name}", body)
        self.ask("POST", f"/containers/{name}/start")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def _pack_image() -> bytes:
    """Return the root of a container as a tar file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(Path(shutil.which("busybox") or "busybox").resolve(), "bin/busybox")
        for name in _LINKS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return packed.getvalue()
