"""How the clock of the kernel's log stands to `CLOCK_MONOTONIC`.

printk stamps lines with `local_clock()`, which starts at boot and is never
slewed; `CLOCK_MONOTONIC` follows NTP. The two part by tens of microseconds per
second, by seconds over a few days. perf events stamp their records with the same
`local_clock()` unless told otherwise (`perf_clock`, kernel/events/core.c), so one
record of our own making, taken between two readings of the monotonic clock, tells
how far apart they are: here within a few microseconds.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import time
from dataclasses import dataclass

from nodescope.errors import SourceError, source_error
from nodescope.perf.event import open_event

_TYPE_SOFTWARE, _CONFIG_DUMMY = 1, 9
_SAMPLE_TIME = 1 << 2
_EXCLUDE_KERNEL, _COMM, _SAMPLE_ID_ALL = 1 << 5, 1 << 9, 1 << 18
_RECORD_COMM = 3
_HEAD, _TAIL = 1024, 1032  # data_head and data_tail of struct perf_event_mmap_page
_SET_NAME, _GET_NAME = 15, 16
_TRIES = 5
_GOOD_NS = 20_000

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Offset:
    """How far the monotonic clock was ahead, at which time of the kernel's, and how surely."""

    ns: int
    kernel_ns: int
    uncertainty_ns: int

    def monotonic_ns(self, kernel_ns: int) -> int:
        """A time of the kernel's log on the monotonic clock.

        Both start together at boot; what they part by is taken to have grown evenly.
        """
        return kernel_ns + self.ns * kernel_ns // max(self.kernel_ns, 1)


SAME_CLOCK = Offset(0, 1, 0)
"""What is assumed where it cannot be measured: true at boot, and wrong by the drift since."""


class KernelClock:
    """Measures the offset, for the thread that made it. Needs no privilege to speak of."""

    def __init__(self) -> None:
        attribute = bytearray(128)
        flags = _EXCLUDE_KERNEL | _COMM | _SAMPLE_ID_ALL
        struct.pack_into(
            "<IIQQQQQ", attribute, 0,
            _TYPE_SOFTWARE, 128, _CONFIG_DUMMY, 0, _SAMPLE_TIME, 0, flags,
        )  # fmt: skip
        try:
            self._descriptor = open_event(bytes(attribute), pid=0)
        except OSError as error:
            raise source_error("perf_event_open", error) from error
        try:
            self._ring = mmap.mmap(self._descriptor, 2 * mmap.PAGESIZE)
        except OSError as error:
            os.close(self._descriptor)
            raise source_error("perf_event_open", error) from error
        self._name = ctypes.create_string_buffer(16)

    def read_offset(self) -> Offset:
        """How far apart the clocks are now: the best of a few attempts."""
        best: Offset | None = None
        for _ in range(_TRIES):
            offset = self._attempt()
            if best is None or offset.uncertainty_ns < best.uncertainty_ns:
                best = offset
            if best.uncertainty_ns <= _GOOD_NS:
                break
        assert best is not None
        return best

    def _attempt(self) -> Offset:
        _libc.prctl(_GET_NAME, self._name, 0, 0, 0)
        before = time.monotonic_ns()
        _libc.prctl(_SET_NAME, self._name, 0, 0, 0)  # its own name again: a record, no change
        after = time.monotonic_ns()
        kernel = self._take_time()
        if kernel is None:
            raise SourceError("perf_event_open", "a record of our own did not come")
        return Offset((before + after) // 2 - kernel, kernel, (after - before + 1) // 2)

    def _take_time(self) -> int | None:
        """The time of the last record in the ring; the ring is then empty."""
        (head,) = struct.unpack_from("<Q", self._ring, _HEAD)
        (tail,) = struct.unpack_from("<Q", self._ring, _TAIL)
        found: int | None = None
        while tail < head:
            kind, _misc, size = struct.unpack("<IHH", self._bytes(tail, 8))
            if size < 8:
                break
            if kind == _RECORD_COMM:
                (found,) = struct.unpack("<Q", self._bytes(tail + size - 8, 8))
            tail += size
        struct.pack_into("<Q", self._ring, _TAIL, head)
        return found

    def _bytes(self, at: int, size: int) -> bytes:
        # Records are multiples of eight bytes, so eight of them never wrap.
        start = mmap.PAGESIZE + at % mmap.PAGESIZE
        return self._ring[start : start + size]

    def close(self) -> None:
        """Let go of the event."""
        self._ring.close()
        os.close(self._descriptor)
