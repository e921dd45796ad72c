"""Small servers and clients that units of a test run, with the standard library and jeepney.

`python guard_programs.py PROGRAM [ARGUMENT…]`
"""

from __future__ import annotations

import ctypes
import http.client
import json
import os
import socket
import sys
import time
from collections.abc import Callable


def listen_tcp(port: str) -> None:
    """Accept connections for ever, and keep them."""
    while True:
        try:
            _accept(socket.create_server(("127.0.0.1", int(port))))
        except OSError:
            time.sleep(0.1)  # the loopback device is not up yet


def listen_unix(path: str) -> None:
    """Accept connections for ever, and keep them."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    _accept(server)


def serve_activated() -> None:
    """Accept connections of the socket that systemd passed."""
    _accept(socket.socket(fileno=3))


def talk_to_itself(path: str) -> None:
    """Listen, and have a child connect; then stop listening."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    if os.fork() == 0:
        server.close()
        _keep(socket.AF_UNIX, path)
    accepted, _ = server.accept()
    server.close()
    time.sleep(3600)
    accepted.close()


def listen_and_fail(port: str) -> None:
    """Listen for a moment, and fail."""
    with socket.create_server(("127.0.0.1", int(port))):
        time.sleep(0.1)
    sys.exit(4)


def connect_tcp(port: str) -> None:
    """Keep a connection, also one that comes late."""
    _keep(socket.AF_INET, ("127.0.0.1", int(port)))


def connect_unix(path: str) -> None:
    """Keep a connection, also one that comes late."""
    _keep(socket.AF_UNIX, path)


def serve_files(point: str) -> None:
    """Mount a file system in user space, and never answer."""
    os.makedirs(point, exist_ok=True)
    if not os.path.exists("/dev/fuse"):
        os.mknod("/dev/fuse", 0o020600, os.makedev(10, 229))
    descriptor = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={descriptor},rootmode=40000,user_id=0,group_id=0"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"guard", point.encode(), b"fuse.guard", 0, options.encode()) != 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    time.sleep(3600)


def own_name(name: str, packages: str) -> None:
    """Own a name on the system bus, as soon as the bus allows it."""
    bus = _open_bus(packages)
    while bus("RequestName", "su", (name, 0)) != 1:
        time.sleep(0.2)
    time.sleep(3600)


def watch_name(name: str, packages: str) -> None:
    """Ask the bus for the signals of a name."""
    bus = _open_bus(packages)
    bus("AddMatch", "s", (f"type='signal',sender='{name}'",))
    time.sleep(3600)


def _open_bus(packages: str) -> Callable[[str, str, tuple[object, ...]], object]:
    """Return a function that calls a method of the bus; None is the answer of a refusal."""
    sys.path.append(packages)
    from jeepney import DBusAddress, MessageType, new_method_call
    from jeepney.io.blocking import open_dbus_connection

    address = DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
    while True:
        try:
            connection = open_dbus_connection("SYSTEM")
            break
        except OSError:
            time.sleep(0.2)  # the bus is not up yet

    def call(member: str, signature: str, body: tuple[object, ...]) -> object:
        answer = connection.send_and_get_reply(new_method_call(address, member, signature, body))
        refused = answer.header.message_type is MessageType.error
        return None if refused or not answer.body else answer.body[0]

    return call


def make_anew(*command: str) -> None:
    """Make, start and remove one container after the other, as the command's client would.

    The connection is kept for a round, as `docker run` keeps it while the container runs.
    """
    name = command[-1]
    body = json.dumps({"Image": "lab", "Cmd": ["sh", "-c", "exit 2"],
                       "HostConfig": {"NetworkMode": "none"}})  # fmt: skip
    while True:
        docker = http.client.HTTPConnection("docker", timeout=30)
        docker.sock = socket.socket(socket.AF_UNIX)
        try:
            docker.sock.connect("/run/docker.sock")
            if _ask(docker, "POST", f"/containers/create?name={name}", body) < 300:
                _ask(docker, "POST", f"/containers/{name}/start")
                time.sleep(0.5)
                with open(f"/run/{name}", "a") as told:
                    told.write("made\n")
            _ask(docker, "DELETE", f"/containers/{name}?force=1")
        except OSError:
            pass  # dockerd is not up yet
        finally:
            docker.close()
        time.sleep(0.1)


def watch_docker(name: str) -> None:
    """Keep a connection to dockerd, and make nothing."""
    print("docker inspect", name)
    connect_unix("/run/docker.sock")


def _ask(docker: http.client.HTTPConnection, method: str, path: str, body: str = "") -> int:
    docker.request(method, path, body, {"Content-Type": "application/json"})
    answer = docker.getresponse()
    answer.read()
    return answer.status


def _accept(server: socket.socket) -> None:
    kept = []
    while True:
        kept.append(server.accept())


def _keep(family: int, address: str | tuple[str, int]) -> None:
    while True:
        connection = socket.socket(family)
        try:
            connection.connect(address)
        except OSError:
            connection.close()
            time.sleep(0.2)
            continue
        connection.recv(1)


PROGRAMS: dict[str, Callable[..., None]] = {
    each.__name__: each
    for each in (
        listen_tcp, listen_unix, serve_activated, talk_to_itself, listen_and_fail,
        connect_tcp, connect_unix, serve_files, make_anew, own_name,
        watch_name, watch_docker,
    )
}  # fmt: skip

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
