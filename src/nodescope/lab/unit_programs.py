"""The programs that units of the lab's systemd run, each under a name of the run's choice.

`python -m nodescope.lab.unit_programs COMM PROGRAM [ARGUMENT…]`. They use the standard
library only: the guest sees this package and a Python, but no other packages.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nodescope.lab.workers import settle

SOURCE = Path(__file__).resolve().parents[2]  # the folder that has this package
_MIB = 1 << 20
_DIRECT_BYTES = 64 << 10
_PORT = 9
_PACKET = bytes(64)
_BURST = 20
_CALLS, _MESSAGES = 8000, 4


def command(comm: str, program: str, *arguments: object) -> str:
    """Return the words that run a program, as a unit's `ExecStart` has them."""
    words = (Path(sys.executable).resolve(), "-m", __name__, comm, program, *arguments)
    return f"/usr/bin/env PYTHONPATH={SOURCE} {' '.join(map(str, words))}"


def grow(mib: str, step_mib: str, pause_s: str) -> None:
    """Take memory in steps until it has so much, and keep it."""
    kept = []
    for _ in range(int(mib) // int(step_mib)):
        kept.append(bytearray(b"x" * (int(step_mib) * _MIB)))
        time.sleep(float(pause_s))
    time.sleep(3600)


def fork(count: str, pause_s: str) -> None:
    """Start children that only wait; who is refused one asks again."""
    children = 0
    while True:
        if children < int(count):
            with contextlib.suppress(BlockingIOError):
                if os.fork() == 0:
                    time.sleep(3600)
                    os._exit(0)
                children += 1
        time.sleep(float(pause_s))


def connect(count: str, per_s: str) -> None:
    """Open so many connections to itself, at a rate, and keep them.

    Connections, and no single packets: a full table gives up those that had no answer.
    """
    callers = -(-int(count) // _CALLS)  # a process may have only so many files
    for number in range(1, callers):
        if os.fork() == 0:
            _call(_PORT + number, int(count) // callers, int(per_s) / callers)
    _call(_PORT, int(count) // callers, int(per_s) / callers)


def _call(port: int, count: int, per_s: float) -> None:
    listener = socket.create_server(("", port), backlog=4096)
    listener.setblocking(False)
    kept, begun = [listener], time.monotonic()
    for number in range(count):
        caller = socket.socket()
        caller.setblocking(False)
        with contextlib.suppress(OSError):  # not yet, or a full table refuses
            caller.connect(("127.0.0.1", port))
        kept.append(caller)
        with contextlib.suppress(OSError):
            for _ in range(_MESSAGES):
                caller.send(_PACKET)
        with contextlib.suppress(OSError):  # nobody has called
            kept.append(listener.accept()[0])
        if number % _BURST == 0:
            time.sleep(max(0.0, begun + number / per_s - time.monotonic()))
    time.sleep(3600)


def flood(packets_per_s: str, seconds: str) -> None:
    """Send to ourselves at a rate, in bursts of a millisecond; 0 is as fast as it goes."""
    rate = int(packets_per_s)
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        for _ in range(rate // 1000 if rate else 100):
            sender.send(_PACKET)
        if rate:
            time.sleep(0.001)
    time.sleep(3600)


def spin(seconds: str) -> None:
    """Be busy in user code, then wait."""
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        sum(range(20_000))
    time.sleep(3600)


def scan(folder: str, busy_s: str, every_s: str) -> None:
    """Read every file below a folder, again and again for so long, once in a while."""
    buffer = bytearray(_MIB)
    while True:
        begun = time.monotonic()
        for path in _files(folder, begun + float(busy_s)):
            with contextlib.suppress(OSError):
                _read(path, buffer, begun + float(busy_s))
        time.sleep(max(0.0, begun + float(every_s) - time.monotonic()))


def _files(folder: str, end: float) -> Iterator[str]:
    """Yield the files below a folder, from the start again when all were, until the time is up."""
    while True:
        for place, _, names in os.walk(folder):
            for name in names:
                if time.monotonic() >= end:
                    return
                yield f"{place}/{name}"


def _read(path: str, buffer: bytearray, end: float) -> None:
    source = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while os.readv(source, [buffer]) and time.monotonic() < end:
            pass
    finally:
        os.close(source)


def fill(path: str, mib: str, pause_s: str) -> None:
    """Write a file in steps of a MiB; where there is no more room, try again."""
    with open(path, "wb", buffering=0) as file:
        for _ in range(int(mib)):
            with contextlib.suppress(OSError):
                file.write(bytes(_MIB))
                os.fsync(file.fileno())
            time.sleep(float(pause_s))
    time.sleep(3600)


def append(path: str, pause_s: str, writers: str) -> None:
    """Append to a file past the page cache: each write of each writer waits for its disk."""
    for _ in range(int(writers) - 1):
        if os.fork() == 0:
            break
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DIRECT)
    block = mmap.mmap(-1, _DIRECT_BYTES)  # aligned as the device wants it
    while True:
        with contextlib.suppress(OSError):  # full: whoever reads our recording sees that
            os.write(file, block)
        time.sleep(float(pause_s))


_PROGRAMS: dict[str, Callable[..., None]] = {
    "grow": grow,
    "fork": fork,
    "connect": connect,
    "flood": flood,
    "spin": spin,
    "scan": scan,
    "fill": fill,
    "append": append,
}

if __name__ == "__main__":
    settle(sys.argv[1], -1, first=False)
    _PROGRAMS[sys.argv[2]](*sys.argv[3:])
