"""On what processes listen: TCP and UDP ports, and sockets of files."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_TABLES = ("tcp", "tcp6", "udp", "udp6")
_TCP_LISTEN, _UDP_BOUND = b"0A", b"07"
_ACCEPTS = 0x10000  # __SO_ACCEPTCON
_MAX_BYTES = 16 << 20
_MAX_SHOWN = 16


def read_listening(proc: Path, pids: Collection[int]) -> tuple[str, ...]:
    """Read the sockets that these processes listen on, as `tcp:80` or `unix:/run/x`."""
    found: set[str] = set()
    known: dict[str, dict[int, str]] = {}
    for pid in pids:
        inodes = _sockets_of(proc, pid)
        if not inodes:
            continue
        try:
            namespace = os.readlink(proc / str(pid) / "ns/net")
        except OSError:
            continue  # it ended, or is not ours to look at
        if namespace not in known:
            known[namespace] = _read_tables(proc / str(pid) / "net")
        found.update(name for inode in inodes if (name := known[namespace].get(inode)))
    return tuple(sorted(found)[:_MAX_SHOWN])


def _sockets_of(proc: Path, pid: int) -> list[int]:
    directory = proc / str(pid) / "fd"
    inodes = []
    try:
        for name in os.listdir(directory):
            try:
                target = os.readlink(directory / name)
            except OSError:
                continue  # closed in the meantime
            if target.startswith("socket:["):
                inodes.append(int(target[8:-1]))
    except OSError:
        return []
    return inodes


def _read_tables(net: Path) -> dict[int, str]:
    listening: dict[int, str] = {}
    for table in (*_TABLES, "unix"):
        try:
            with open(net / table, "rb") as file:
                content = file.read(_MAX_BYTES)
        except OSError:
            continue
        listening |= parse_unix(content) if table == "unix" else parse_ports(content, table)
    return listening


def parse_ports(content: bytes, table: str) -> dict[int, str]:
    """Listening sockets of `/proc/net/tcp` and the like, by inode."""
    wanted = _TCP_LISTEN if table.startswith("tcp") else _UDP_BOUND
    found = {}
    for line in content.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == wanted and fields[9].isdigit():
            port = fields[1].rpartition(b":")[2]
            found[int(fields[9])] = f"{table.rstrip('6')}:{int(port, 16)}"
    return found


def parse_unix(content: bytes) -> dict[int, str]:
    """Listening sockets of `/proc/net/unix`, by inode."""
    found = {}
    for line in content.splitlines()[1:]:
        fields = line.split(None, 7)
        try:
            if len(fields) > 6 and int(fields[3], 16) & _ACCEPTS:
                path = fields[7].decode("utf-8", "replace") if len(fields) > 7 else "unnamed"
                found[int(fields[6])] = f"unix:{path}"
        except ValueError:
            continue  # not a line of this table
    return found
