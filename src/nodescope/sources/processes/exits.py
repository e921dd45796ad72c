"""Ends of processes as the kernel accounts them: who, whose child, how long, which exit code.

`TASKSTATS` over generic netlink tells of every task that ends on a CPU. It
needs CAP_NET_ADMIN, the first network namespace, and speaks in process ids of
the first pid namespace: elsewhere it is absent. A process with many threads is told
of once, by its last. Before Linux 5.19 (version 12 of the format) each thread tells of its
own end: then ends of one parent with one status that come together are taken for one.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from nodescope.errors import SourceAbsent, SourceError, source_error

_GENERIC = 16
_CONTROL_FAMILY, _GET_FAMILY, _FAMILY_NAME, _FAMILY_ID = 16, 3, 2, 1
_GET, _REGISTER = 1, 3
_OF_TASK, _STATS = 4, 3
_ERROR = 2
_FIRST_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO
_BUFFER = 4 << 20
_SO_RCVBUFFORCE = 33
_NAME = "taskstats"
_TELLS_LAST, _LAST = 12, 0x20  # from that version on a flag (AGROUP) says: its last thread
_NO_EXEC = 0x01  # AFORK: it never ran a program of its own; said of its first thread only
_SHIFTED = 15  # put new fields before old ones (Linux 6.14); 16 took that back


@dataclass(frozen=True, slots=True)
class TaskExit:
    """One process's end; `status` is as `wait` gives it."""

    pid: int
    parent: int
    comm: str
    status: int
    lasted_us: int
    execed: bool = True  # ran a program of its own, and is no mere fork of its parent
    whole: bool = True  # told of once, not by each thread

    @property
    def signal(self) -> int:
        return self.status & 0x7F

    @property
    def exit_code(self) -> int:
        return self.status >> 8 & 0xFF


class TaskExits:
    """Listens for ends of tasks from its opening on."""

    def __init__(self) -> None:
        if os.stat("/proc/self/ns/pid").st_ino != _FIRST_PID_NAMESPACE:
            raise SourceAbsent(_NAME, "not in the first pid namespace")
        self.lost = False
        try:
            self._socket = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _GENERIC
            )
        except OSError as error:
            raise source_error(_NAME, error) from error
        try:
            self._socket.settimeout(5.0)
            self._socket.bind((0, 0))
            self._grow_buffer()
            family = self._find_family()
            cpus = f"0-{(os.cpu_count() or 1) - 1}".encode() + b"\0"
            self._ask(family, _GET, _REGISTER, cpus, acknowledge=True)
            self._socket.setblocking(False)
        except OSError as error:
            self._socket.close()
            raise source_error(_NAME, error) from error
        except SourceError:
            self._socket.close()
            raise

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()

    def take(self) -> list[TaskExit]:
        """The ends since the last call."""
        exits: list[TaskExit] = []
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return _without_threads(exits)
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise source_error(_NAME, error) from error
                self.lost = True  # more ended than the buffer holds
                continue
            exits += parse_task_exits(data)

    def _grow_buffer(self) -> None:
        for option in (_SO_RCVBUFFORCE, socket.SO_RCVBUF):
            try:
                self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
            except OSError:
                continue  # the second may always be set, within the limit
            return

    def _find_family(self) -> int:
        answer = self._ask(_CONTROL_FAMILY, _GET_FAMILY, _FAMILY_NAME, b"TASKSTATS\0")
        for kind, value in _attributes(answer[4:]):
            if kind == _FAMILY_ID and len(value) >= 2:
                family: int = struct.unpack_from("=H", value)[0]
                return family
        raise SourceAbsent(_NAME, "the kernel does not account ends of tasks")

    def _ask(
        self, family: int, command: int, attribute: int, value: bytes, *, acknowledge: bool = False
    ) -> bytes:
        body = struct.pack("=BBH", command, 1, 0) + struct.pack("=HH", 4 + len(value), attribute)
        body += value + b"\0" * (-len(value) % 4)
        flags = 1 | (4 if acknowledge else 0)
        self._socket.send(struct.pack("=IHHII", 16 + len(body), family, flags, 1, 0) + body)
        while True:
            for kind, payload in _messages(self._socket.recv(1 << 16)):
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", payload)[0]
                    if number:
                        raise OSError(number, os.strerror(number))
                    return b""
                if not acknowledge:
                    return payload


def parse_task_exits(data: bytes) -> list[TaskExit]:
    """The ends that a datagram of the kernel holds."""
    exits = []
    for kind, payload in _messages(data):
        if kind == _ERROR:
            continue
        for outer, nested in _attributes(payload[4:]):
            if outer != _OF_TASK:
                continue
            for inner, value in _attributes(nested):
                if inner == _STATS and len(value) >= 152 and _ends_process(value):
                    exits.append(_parse_stats(value))
    return exits


def _ends_process(value: bytes) -> bool:
    (version,) = struct.unpack_from("=H", value)
    if version == _SHIFTED:
        raise SourceAbsent(_NAME, "this kernel's format (version 15) is not as it was promised")
    return version < _TELLS_LAST or bool(value[8] & _LAST)


def _parse_stats(value: bytes) -> TaskExit:
    """`struct taskstats`: the fields used stand where they stood since its first version."""
    version, status = struct.unpack_from("=H2xI", value)
    comm = value[80:112].split(b"\0", 1)[0].decode("utf-8", "replace")
    pid, parent = struct.unpack_from("=II", value, 128)
    (lasted,) = struct.unpack_from("=Q", value, 144)
    execed = not value[8] & _NO_EXEC
    if version >= _TELLS_LAST and len(value) >= 384:
        process, existed = struct.unpack_from("=I4xQ", value, 368)
        lasted = existed or lasted
        execed = execed and process in (pid, 0)  # another thread does not know
    return TaskExit(pid, parent, comm, status, lasted, execed, version >= _TELLS_LAST)


def _without_threads(exits: list[TaskExit]) -> list[TaskExit]:
    """Return one exit for each parent and status, where threads may have reported several."""
    told: dict[tuple[int, int], TaskExit] = {}
    for each in exits:
        if not each.whole:
            told.setdefault((each.parent, each.status), each)
    return [each for each in exits if each.whole or told[each.parent, each.status] is each]


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 16 <= len(data):
        size, kind = struct.unpack_from("=IH", data, at)
        if size < 16 or at + size > len(data):
            return
        yield kind, data[at + 16 : at + size]
        at += (size + 3) & ~3


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        size, kind = struct.unpack_from("=HH", data, at)
        if size < 4 or at + size > len(data):
            return
        yield kind & 0x3FFF, data[at + 4 : at + size]
        at += (size + 3) & ~3
