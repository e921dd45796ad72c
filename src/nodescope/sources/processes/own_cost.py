"""CPU time and resident memory of this process."""

from __future__ import annotations

import mmap
import time
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import source_error


@dataclass(frozen=True, slots=True)
class OwnCost:
    """Since the process started."""

    cpu_ns: int
    rss_bytes: int


def read_own_cost(proc: Path = Path("/proc")) -> OwnCost:
    """CPU time of all threads, and resident memory from `statm`."""
    path = f"{proc}/self/statm"
    try:
        with open(path, "rb", buffering=0) as file:
            resident = int(file.read(256).split()[1])
    except OSError as error:
        raise source_error(path, error) from error
    return OwnCost(time.process_time_ns(), resident * mmap.PAGESIZE)
