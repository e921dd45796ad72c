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
    try:
        descriptor = os.open(f"{proc}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return parse_stat(os.read(descriptor, 512))
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
