"""Threads that serve packets: `napi/IF-N`, where a device's `threaded` is set (since 5.12).

They are threads of the kernel like any other: who holds the core, holds them up.
`/proc/PID/schedstat` tells how long one ran and how long it waited to run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource, source_error
from nodescope.sources.kernel_files import read_text

_KTHREADD = 2
_PROCESSOR = 36  # of /proc/PID/stat, counted from the state


@dataclass(frozen=True, slots=True)
class ThreadTimes:
    """One thread at one time."""

    runnable: bool  # it runs or waits to
    cpu: int  # where it ran last, or waits
    ran_ns: int
    waited_ns: int  # until it last ran


def list_kernel_threads(proc: Path) -> list[int]:
    """The kernel's threads; none where they are not to be seen, as in a container."""
    if read_text(f"{proc}/{_KTHREADD}/comm") != "kthreadd":
        return []
    path = f"{proc}/{_KTHREADD}/task/{_KTHREADD}/children"
    try:
        with open(path, "rb", buffering=0) as file:
            return [int(pid) for pid in file.readall().split()]
    except FileNotFoundError:  # CONFIG_PROC_CHILDREN is off
        return [int(name) for name in os.listdir(proc) if name.isdecimal()]
    except OSError as error:
        raise source_error(path, error) from error


def read_thread_times(proc: Path, pid: int) -> ThreadTimes | None:
    """One thread's; None if it has ended."""
    stat, times = read_text(f"{proc}/{pid}/stat"), read_text(f"{proc}/{pid}/schedstat")
    return parse_thread_times(stat, times, f"{proc}/{pid}") if stat and times else None


def parse_thread_times(stat: str, times: str, path: str | Path = "schedstat") -> ThreadTimes:
    """From the texts of `stat` and `schedstat`."""
    fields = stat.rpartition(")")[2].split()
    numbers = times.split()
    try:
        return ThreadTimes(
            runnable=fields[0] == "R",
            cpu=int(fields[_PROCESSOR]),
            ran_ns=int(numbers[0]),
            waited_ns=int(numbers[1]),
        )
    except (ValueError, IndexError) as error:
        raise MalformedSource(path, "not a thread's times") from error
