"""Single tasks (threads): state, scheduling, what a blocked one waits for.

    /proc/TID/stat       fields 3 state, 20 threads, 19 nice, 40 rt_priority, 41 policy (proc(5))
    /proc/TID/status     Cpus_allowed_list, voluntary_ctxt_switches, …
    /proc/TID/schedstat  time on a core, time waited for one, times that it was put on one
    /proc/TID/wchan      function of the kernel that it sleeps in; `0` if none, or not allowed
    /proc/TID/stack      its stack in the kernel, for root (CONFIG_STACKTRACE)

Every thread has a directory by its own number under /proc, though only those of processes
are listed there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from nodescope.errors import source_error

_POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
_REAL_TIME = ("fifo", "rr")
_MAX_BYTES = 16 << 10


class TaskStat(NamedTuple):
    """One task as `stat` has it."""

    comm: str
    state: str  # a letter: R, S, D, …
    threads: int
    nice: int
    real_time_priority: int
    policy: str | None  # None: one that is not known here

    @property
    def priority(self) -> int:
        """Return the real-time priority, 1 to 99; the nice value of all others."""
        return self.real_time_priority if self.policy in _REAL_TIME else self.nice


def parse_task_stat(content: bytes) -> TaskStat | None:
    """Parse `stat`; None if it is not what it should be."""
    head, _, rest = content.rpartition(b")")
    fields = rest.split()
    try:
        return TaskStat(
            head.partition(b"(")[2].decode("utf-8", "replace"),
            fields[0].decode("ascii", "replace"),
            int(fields[17]),
            int(fields[16]),
            int(fields[37]),
            _POLICIES.get(int(fields[38])),
        )
    except (IndexError, ValueError):
        return None


def parse_state(content: bytes) -> tuple[str, int] | None:
    """Return state and number of threads alone: at a third of what all of `stat` costs."""
    fields = content[content.rfind(b")") + 1 :].split(None, 18)
    if len(fields) < 19 or not fields[17].isdigit():
        return None
    return fields[0].decode("ascii", "replace"), int(fields[17])


def parse_allowed_cpus(status: bytes) -> str | None:
    """Return the cores that a task may run on, as `status` writes them."""
    return _parse_line(status, b"Cpus_allowed_list:")


def parse_switches(status: bytes) -> int | None:
    """Return how often a task left its core, of its own will or not."""
    wanted = (b"voluntary_ctxt_switches:", b"nonvoluntary_ctxt_switches:")
    numbers = [_parse_line(status, name) for name in wanted]
    return sum(int(each) for each in numbers if each) if all(numbers) else None


def _parse_line(status: bytes, name: bytes) -> str | None:
    for line in status.split(b"\n"):
        if line.startswith(name):
            return line[len(name) :].strip().decode("ascii", "replace")
    return None


def parse_kernel_stack(content: bytes) -> str | None:
    """Return the functions of `stack`, outermost first, separated by `;`; None without any."""
    functions = []
    for line in content.decode("ascii", "replace").splitlines():
        function = line.partition("] ")[2].partition("+")[0].strip()
        if function and not function.startswith("0x"):
            functions.append(function)
    return ";".join(reversed(functions)) or None


class TaskFiles:
    """Reads the files of tasks under one `/proc`, by a descriptor that stays open."""

    def __init__(self, proc: Path) -> None:
        try:
            self._proc = os.open(proc, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise source_error(proc, error) from error

    def list_processes(self) -> list[int]:
        """Return the processes there are."""
        return [int(name) for name in os.listdir(self._proc) if name.isdecimal()]

    def list_threads(self, pid: int) -> list[int]:
        """Return the threads of a process; none if it has ended."""
        try:
            folder = os.open(f"{pid}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._proc)
        except OSError:
            return []
        try:
            return [int(name) for name in os.listdir(folder)]
        except OSError:
            return []
        finally:
            os.close(folder)

    def read(self, tid: int, name: str) -> bytes | None:
        """Return a file of a task; None if it has ended, or the file may not be read."""
        try:
            descriptor = os.open(f"{tid}/{name}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        except OSError:
            return None
        try:
            return os.read(descriptor, _MAX_BYTES)
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def read_state(self, tid: int) -> tuple[str, int] | None:
        """Return the state of a task and the number of its process's threads; None: it ended."""
        content = self.read(tid, "stat")
        return None if content is None else parse_state(content)

    def read_stat(self, tid: int) -> TaskStat | None:
        """Return a task's state and scheduling; None if it has ended."""
        content = self.read(tid, "stat")
        return None if content is None else parse_task_stat(content)

    def count_runs(self, tid: int) -> int | None:
        """Return how often a task was put on a core; it slept in between if it grew."""
        content = self.read(tid, "schedstat")
        if content is not None:
            fields = content.split()
            if len(fields) == 3 and fields[2].isdigit() and fields[2] != b"0":
                return int(fields[2])
        status = self.read(tid, "status")  # a kernel without CONFIG_SCHED_INFO
        return None if status is None else parse_switches(status)

    def read_wait(self, tid: int) -> str | None:
        """Return the function of the kernel that a task sleeps in; None if that is not told."""
        content = self.read(tid, "wchan")
        name = "" if content is None else content.decode("ascii", "replace").strip("\0\n ")
        return name if name and name != "0" else None

    def read_kernel_stack(self, tid: int) -> str | None:
        """Return a task's stack in the kernel; None where that is not allowed."""
        content = self.read(tid, "stack")
        return None if content is None else parse_kernel_stack(content)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._proc)
