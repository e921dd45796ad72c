"""The load (`/proc/loadavg`), blocked processes (`/proc/stat`) and hung tasks that were detected.

/proc/loadavg     9.62 6.94 4.65 11/186 7175    load by 1, 5, 15 min; runnable/all tasks
/proc/stat        procs_blocked 2               tasks that wait for a disk
/proc/sys/kernel/hung_task_detect_count         since boot (v6.18)
/proc/sys/kernel/hung_task_warnings             reports that are left: counts down to 0
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from nodescope.errors import MalformedSource
from nodescope.sources.kernel_files import read_file


class Load(NamedTuple):
    """The load of one minute, and how many tasks are runnable now."""

    one_minute: float
    runnable: int


def parse_load(content: bytes, path: Path | str = "loadavg") -> Load:
    """Parse `loadavg`."""
    fields = content.split()
    try:
        return Load(float(fields[0]), int(fields[3].partition(b"/")[0]))
    except (IndexError, ValueError) as error:
        raise MalformedSource(path, f"not a load: {content[:80]!r}") from error


def read_procs_blocked(proc: Path) -> int | None:
    """Return how many tasks wait for a disk; None if the kernel does not tell."""
    return parse_procs_blocked(read_file(proc / "stat"))


def parse_procs_blocked(content: bytes) -> int | None:
    """Parse `stat` for the tasks that wait for a disk."""
    number = content.rpartition(b"\nprocs_blocked ")[2].partition(b"\n")[0]
    return int(number) if number.isdigit() else None


def parse_count(content: bytes) -> int | None:
    """Parse a file with one number; None for `-1`, which stands for no limit."""
    text = content.strip()
    return int(text) if text.isdigit() else None
