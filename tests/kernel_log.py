"""Lines written to this machine's own kernel log, each at a known moment."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

_SIZE_BUFFER = 10
_LIMIT = Path("/proc/sys/kernel/printk_devkmsg")


class Written(NamedTuple):
    text: str
    before_ns: int
    after_ns: int


def write_line(text: str, level: int = 7) -> Written:
    """Write one line, and say between which moments; a level that no console prints."""
    before = time.monotonic_ns()
    # Opened anew each time: the kernel limits the rate of each open file.
    descriptor = os.open("/dev/kmsg", os.O_WRONLY)
    try:
        os.write(descriptor, f"<{level}>{text}\n".encode())
    finally:
        os.close(descriptor)
    return Written(text, before, time.monotonic_ns())


def ring_bytes() -> int:
    """How large the kernel's log is."""
    return int(ctypes.CDLL(None).klogctl(_SIZE_BUFFER, None, 0))


# Writes numbered lines at an even rate and says how many, and in how many seconds.
FLOOD = """
import os, sys, time
tag, rate, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
descriptor = os.open("/dev/kmsg", os.O_WRONLY)
begin, written = time.monotonic(), 0
while (passed := time.monotonic() - begin) < seconds:
    while written < passed * rate:
        os.write(descriptor, b"<7>%s %07d %s\\n" % (tag.encode(), written, b"x" * 60))
        written += 1
    time.sleep(0.002)
print(written, time.monotonic() - begin)
"""


@contextmanager
def without_limit() -> Iterator[None]:
    """Let one open file write more than ten lines in five seconds, the kernel's usual limit."""
    before = _LIMIT.read_text()
    _LIMIT.write_text("on\n")
    try:
        yield
    finally:
        _LIMIT.write_text(before)


@contextmanager
def flood(tag: str, rate: float, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A process that floods the log for so long, ended with the block."""
    command = [sys.executable, "-c", FLOOD, tag, str(rate), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
