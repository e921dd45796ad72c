"""The processes of scenarios: small programs with a name of their own, run by `python -m`.

`python -m nodescope.lab.workers NAME CPU SECONDS [ARGUMENT…]`. Each pins itself, takes
its name as `comm`, does one thing, and ends by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import mmap
import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

_POPULATE_READ, _POPULATE_WRITE = 22, 23  # madvise(2), since 5.14
_MAPPED, _PIECE = 8 << 30, 1 << 20
# Some 25 µs to go through. A virtual machine's core that spins for much longer is put to sleep.
_RECORDS = 5000


def settle(comm: str, cpu: int, *, first: bool = True) -> None:
    """Take a name, a core if one is given, and the right to run before others."""
    Path("/proc/self/comm").write_text(comm)
    if cpu >= 0:
        os.sched_setaffinity(0, {cpu})
    if first:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        # Where sessions are scheduled as groups, a task's priority counts only inside its own.
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text("-20")


def say(text: str) -> None:
    """Tell the scenario that started this worker, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def read_at_limit(cpu: int, seconds: float, cgroup: str, path: str, duty: str) -> None:
    """Read a file again and again in a cgroup at its limit; `duty` is the share of time."""
    Path(cgroup, "cgroup.procs").write_text("0")
    settle("lab-reader", cpu)
    end = time.monotonic() + seconds
    share = float(duty)
    # One buffer for all: memory of the reader's own would only cost time in user mode.
    buffer = bytearray(1 << 20)
    while time.monotonic() < end:
        source = os.open(path, os.O_RDONLY)
        os.posix_fadvise(source, 0, 0, os.POSIX_FADV_DONTNEED)
        begun = time.monotonic()
        while time.monotonic() < end and os.readv(source, [buffer]):
            if share < 1:
                time.sleep((time.monotonic() - begun) * (1 - share) / share)
                begun = time.monotonic()
        os.close(source)


def map_at_limit(cpu: int, seconds: float, cgroup: str, path: str, duty: str) -> None:
    """Map a file piece by piece in a cgroup at its limit: each page mapped costs one unmapped."""
    Path(cgroup, "cgroup.procs").write_text("0")
    settle("lab-reader", cpu)
    end, share = time.monotonic() + seconds, float(duty)
    with open(path, "rb") as file:
        # Not all at once: the tables of a mapping count, too, and stay while it does.
        for start in itertools.cycle(range(0, os.path.getsize(path), _MAPPED)):
            with mmap.mmap(file.fileno(), _MAPPED, prot=mmap.PROT_READ, offset=start) as area:
                for at in range(0, _MAPPED, _PIECE):
                    begun = time.monotonic()
                    if begun >= end:
                        return
                    area.madvise(_POPULATE_READ, at, _PIECE)
                    if share < 1:
                        time.sleep((time.monotonic() - begun) * (1 - share) / share)


def spin(cpu: int, seconds: float) -> None:
    """Be busy, and innocent: user code only."""
    settle("lab-busy", cpu)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(20_000))


def fault(cpu: int, seconds: float, huge: str) -> None:
    """Touch new memory all the time."""
    settle("lab-faults" if huge == "no" else "lab-huge", cpu)
    end, size = time.monotonic() + seconds, 64 << 20
    advice = mmap.MADV_NOHUGEPAGE if huge == "no" else mmap.MADV_HUGEPAGE
    own = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # shared memory seldom has huge pages
    while time.monotonic() < end:
        with mmap.mmap(-1, size, flags=own) as area:
            area.madvise(advice)
            # MADV_POPULATE_WRITE: faults without a word of user code
            area.madvise(_POPULATE_WRITE)


def compact(cpu: int, seconds: float) -> None:
    """Compact all memory again and again, as one who must have huge pages does."""
    settle("lab-compact", cpu)
    end = time.monotonic() + seconds
    control = os.open("/proc/sys/vm/compact_memory", os.O_WRONLY)
    while time.monotonic() < end:
        os.write(control, b"1")


def contend(cpu: int, seconds: float) -> None:
    """Two processes that want one lock of the kernel all the time: a core spins for it.

    It is the spinlock of a file's record locks. Who asks whether a byte is free has it while
    the kernel goes through all of them; who asks for one that is not, for a moment only.
    Processes, not threads: those of Python take turns at system calls that the kernel does
    at once.
    """
    other = min(os.sched_getaffinity(0) - {cpu})
    settle("lab-locks", other)  # both first: a lock that its holder has no time for is free
    file = os.memfd_create("records")
    for at in range(0, 2 * _RECORDS, 2):  # adjacent ones would be made one
        fcntl.fcntl(file, fcntl.F_SETLK, _record(at))
    end = time.monotonic() + seconds
    waiting = os.fork()
    if waiting == 0:
        settle("lab-locks", cpu)
    question = _record(0)  # the parent's: to itself all bytes are free
    while time.monotonic() < end:
        fcntl.fcntl(file, fcntl.F_GETLK, question)
    if waiting == 0:
        os._exit(0)
    os.waitpid(waiting, 0)


def _record(at: int) -> bytes:
    """One byte of a file, to be locked for writing: `struct flock`."""
    return struct.pack("hhqqi0q", fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0)


def leak(cpu: int, seconds: float, parent: str, pins: str, count: str, name: str) -> None:
    """Make cgroups that stay when they are removed: each holds a page of a file that stays."""
    del seconds
    settle("lab-leaker", cpu, first=False)
    for number in range(int(count)):
        path = f"{parent}/{name}-{number}"
        os.mkdir(path)
        child = os.fork()
        if child == 0:
            with open(f"{path}/cgroup.procs", "w") as procs:
                procs.write("0")
            with open(f"{pins}/{number}", "wb") as file:
                file.write(bytes(4096))
            os._exit(0)
        os.waitpid(child, 0)
        os.rmdir(path)


def wait_for_peer(cpu: int, seconds: float, port: str) -> None:
    """A job that lives as long as its connection: fails when it breaks."""
    settle("lab-job", cpu, first=False)
    with socket.create_connection(("127.0.0.1", int(port)), timeout=seconds) as peer:
        if not peer.recv(1):
            sys.exit(1)


_WORKERS: dict[str, Callable[..., None]] = {
    "reader": read_at_limit,
    "mapper": map_at_limit,
    "busy": spin,
    "faults": fault,
    "compact": compact,
    "locks": contend,
    "leaker": leak,
    "job": wait_for_peer,
}

if __name__ == "__main__":
    _WORKERS[sys.argv[1]](int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
