"""Unix sockets of a network namespace and who is connected to whom, by `sock_diag(7)`.

`/proc/net/unix` has no peers: a netlink dump has them (`UNIX_DIAG_PEER`, since 3.3). A peer is
an inode, and may be in another network namespace. The accepted end of a connection bears the
name of the socket that it came in by, the other end usually none, and the file of that socket
(`UNIX_DIAG_VFS`): names repeat in other mount namespaces, a device and inode do not.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import SourceError, source_error

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_DONE, _ERROR = 3, 2
_SHOW_NAME, _SHOW_FILE, _SHOW_PEER = 1, 2, 4
_NAME, _FILE, _PEER = 0, 1, 2  # UNIX_DIAG_NAME, UNIX_DIAG_VFS, UNIX_DIAG_PEER
_LISTEN = 10
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_HEADER = struct.Struct("=IHHII")
_MESSAGE = struct.Struct("=BBBBIII")
_ATTRIBUTE = struct.Struct("=HH")
_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class UnixSocket:
    """One socket; an abstract name begins with `@`."""

    inode: int
    name: str
    listening: bool
    peer: int | None  # inode of the other end
    file: tuple[int, int] | None = None  # device and inode of its path, as `file_of` has them


def file_of(path: Path) -> tuple[int, int]:
    """Return the device and inode of a socket's path, as far as sock_diag has bits for them."""
    try:
        found = path.stat()
    except OSError as error:
        raise source_error(path, error) from error
    device = os.major(found.st_dev) << 20 | os.minor(found.st_dev)
    return device, found.st_ino & 0xFFFFFFFF


def read_unix_sockets(namespace: Path) -> list[UnixSocket]:
    """Read all Unix sockets of a network namespace, given as `/proc/PID/ns/net`."""
    found: list[UnixSocket] = []
    failed: list[SourceError] = []

    def run() -> None:
        # In a thread of its own: only a thread's namespace can be changed, and it ends with it.
        try:
            with _connect(namespace) as connection:
                found.extend(_dump(connection))
        except OSError as error:
            failed.append(source_error(namespace, error))
        except SourceError as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="unix-sockets")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found


def _connect(namespace: Path) -> socket.socket:
    if os.readlink(namespace) != os.readlink("/proc/thread-self/ns/net"):
        entered = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            library = ctypes.CDLL(None, use_errno=True)
            if library.setns(entered, _NEW_NETWORK) != 0:
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
        finally:
            os.close(entered)
    connection = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
    connection.settimeout(_TIMEOUT_S)
    return connection


def _dump(connection: socket.socket) -> list[UnixSocket]:
    body = struct.pack(
        "=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0,
        _SHOW_NAME | _SHOW_FILE | _SHOW_PEER, 0xFFFFFFFF, 0xFFFFFFFF,
    )  # fmt: skip
    connection.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + body)
    found: list[UnixSocket] = []
    while True:
        sockets, is_last = parse_dump(connection.recv(1 << 18))
        found += sockets
        if is_last:
            return found


def parse_dump(data: bytes) -> tuple[list[UnixSocket], bool]:
    """Return the sockets of one datagram, and whether it ends the dump."""
    found: list[UnixSocket] = []
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, _, _ = _HEADER.unpack_from(data, at)
        body = data[at + _HEADER.size : at + length]
        if kind == _DONE:
            return found, True
        if kind == _ERROR:
            code = -struct.unpack_from("=i", body)[0]
            raise OSError(code, os.strerror(code))
        if kind == _BY_FAMILY and len(body) >= _MESSAGE.size:
            found.append(_parse_socket(body))
        at += max(_HEADER.size, (length + 3) & ~3)
    return found, not data


def _parse_socket(body: bytes) -> UnixSocket:
    _, _, state, _, inode, _, _ = _MESSAGE.unpack_from(body)
    name, peer, file = "", None, None
    at = _MESSAGE.size
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        value = body[at + _ATTRIBUTE.size : at + length]
        if kind == _NAME:
            shown = value.rstrip(b"\0") if value[:1] != b"\0" else b"@" + value[1:]
            name = shown.decode("utf-8", "replace")
        elif kind == _PEER and len(value) >= 4:
            peer = struct.unpack_from("=I", value)[0] or None
        elif kind == _FILE and len(value) >= 8:
            found, device = struct.unpack_from("=II", value)
            file = device, found
        at += max(_ATTRIBUTE.size, (length + 3) & ~3)
    return UnixSocket(inode, name, state == _LISTEN, peer, file)
