"""Ended processes that their parent did not reap: state Z in `/proc/PID/stat`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Stat(NamedTuple):
    """The head of `/proc/PID/stat`."""

    comm: str
    state: str
    parent: int


def read_stat(proc: Path, pid: int) -> Stat | None:
    """Read it; None if the process is gone."""
    content = _read(proc, pid)
    return None if content is None else parse_stat(content)


def read_ended(proc: Path, pid: int) -> Stat | None:
    """Read it of a process that has ended; None of one that runs or is gone."""
    content = _read(proc, pid)
    if content is None or b") Z " not in content:  # hundreds are asked, and hardly any has ended
        return None
    stat = parse_stat(content)
    return stat if stat is not None and stat.state == "Z" else None


def _read(proc: Path, pid: int) -> bytes | None:
    try:
        descriptor = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, 512)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def parse_stat(content: bytes) -> Stat | None:
    """Parse `1234 (name) Z 1 …`; a name may hold blanks and parentheses."""
    head, _, rest = content.rpartition(b")")
    fields = rest.split(None, 2)
    if len(fields) < 2 or not fields[1].isdigit():
        return None
    comm = head.partition(b"(")[2].decode("utf-8", "replace")
    return Stat(comm, fields[0].decode("ascii", "replace"), int(fields[1]))
