"""Perf records as the kernel lays them out, for tests: the writing side of `decode`."""

from __future__ import annotations

import struct
from collections.abc import Sequence

KERNEL, USER = 2**64 - 128, 2**64 - 512
CPUMODE_KERNEL, CPUMODE_USER, COMM_EXEC = 1, 2, 1 << 13


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def sample(
    pid: int,
    tid: int,
    time: int,
    *,
    kernel: Sequence[int] = (),
    user: Sequence[int] = (),
    cgroup: int | None = None,
    chain: Sequence[int] | None = None,
) -> bytes:
    if chain is None:
        chain = [*([KERNEL, *kernel] if kernel else []), *([USER, *user] if user else [])]
    body = struct.pack(f"<IIQQ{len(chain)}Q", pid, tid, time, len(chain), *chain)
    if cgroup is not None:
        body += struct.pack("<Q", cgroup)
    return record(9, body, CPUMODE_KERNEL if kernel else CPUMODE_USER)


def _identified(kind: int, body: bytes, pid: int, tid: int, time: int, misc: int = 0) -> bytes:
    body += b"\0" * (-len(body) % 8)
    return record(kind, body + struct.pack("<IIQ", pid, tid, time), misc)


def comm(pid: int, tid: int, time: int, name: str, *, executed: bool = False) -> bytes:
    body = struct.pack("<II", pid, tid) + name.encode() + b"\0"
    return _identified(3, body, pid, tid, time, COMM_EXEC if executed else 0)


def fork(pid: int, parent: int, time: int, tid: int | None = None) -> bytes:
    body = struct.pack("<IIIIQ", pid, parent, tid or pid, parent, time)
    return _identified(7, body, parent, parent, time)


def end(pid: int, time: int, tid: int | None = None) -> bytes:
    body = struct.pack("<IIIIQ", pid, 1, tid or pid, 1, time)
    return _identified(4, body, pid, tid or pid, time)


def mmap2(
    pid: int,
    time: int,
    start: int,
    length: int,
    path: str,
    *,
    offset: int = 0,
    inode: int = 7,
    device: tuple[int, int] = (8, 1),
) -> bytes:
    body = struct.pack("<IIQQQ", pid, pid, start, length, offset)
    body += struct.pack("<IIQQII", *device, inode, 0, 5, 2) + path.encode() + b"\0"
    return _identified(10, body, pid, pid, time)


def lost(count: int, time: int) -> bytes:
    return _identified(2, struct.pack("<QQ", 1, count), 0, 0, time)


def cgroup(identifier: int, path: str, time: int) -> bytes:
    return _identified(19, struct.pack("<Q", identifier) + path.encode() + b"\0", 0, 0, time)


def ksymbol(
    time: int,
    start: int,
    length: int,
    name: str,
    *,
    kind: int = 1,
    gone: bool = False,
    listeners: int = 1,
) -> bytes:
    """The record as the last of so many listeners gets it: for each the kernel makes it longer."""
    body = struct.pack("<QIHH", start, length, kind, int(gone)) + name.encode() + b"\0"
    body += b"\0" * (-len(body) % 8) + struct.pack("<IIQ", 1, 1, time)
    return record(17, body + b"\xa5" * 16 * (listeners - 1))
