"""Kernel code that comes and goes while we look: BPF programs, trampolines.

The kernel tells of each (PERF_RECORD_KSYMBOL, v5.1) with its place, length and name. The
places of what went are given to what comes next, within seconds and often to the byte, so
a name holds for a place *at a time*. `ChangedCode` is what lies where, as of one moment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field

import numpy as np

from nodescope.arrays import I64, U64
from nodescope.symbols.file_bytes import printable

GONE = -1
"""There was code, and it went."""
UNTOLD = -2
"""Nothing came or went there."""

_TYPE_BPF, _UNREGISTER = 1, 1  # PERF_RECORD_KSYMBOL_TYPE_BPF, _FLAGS_UNREGISTER
_LAST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class CodeChange:
    """Code that came to a place, or went."""

    time_ns: int
    start: int
    end: int
    module: str  # as `/proc/kallsyms` has it
    name: str
    gone: bool = False


def read_code_change(time_ns: int, start: int, about: int, name: str) -> CodeChange:
    """A record; `about` is its second word: length, type and flags, from the lowest bit on."""
    if about >> 32 & 0xFFFF == _TYPE_BPF:
        module = "[bpf]"
    else:  # code out of line, of kprobes or of ftrace
        module = "[__builtin__kprobes]" if name.startswith("kprobe") else "[__builtin__ftrace]"
    end = min(start + (about & 0xFFFFFFFF), _LAST)
    gone = bool(about >> 48 & _UNREGISTER)
    return CodeChange(time_ns, start, end, module, printable(name), gone)


@dataclass(slots=True)
class ChangedCode:
    """Ranges in order, none over another; each holds the number of a name, or `GONE`."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    _columns: tuple[U64, U64, I64] | None = None  # the same, made when many are asked for

    def copy(self) -> ChangedCode:
        """As it is now; what changes later does not change it."""
        return ChangedCode(self.starts.copy(), self.ends.copy(), self.numbers.copy())

    def cover(self, start: int, end: int, number: int) -> None:
        """Say what is there from now on. What that covers, if only in part, is gone as a whole."""
        if start >= end:
            return
        first = bisect_right(self.ends, start)
        last = bisect_left(self.starts, end, first)
        low, high = start, end
        if first < last:
            low, high = min(start, self.starts[first]), max(end, self.ends[last - 1])
        ranges = [(low, start, GONE), (start, end, number), (end, high, GONE)]
        if number == GONE:
            ranges = [(low, high, GONE)]
        ranges = [each for each in ranges if each[0] < each[1]]
        self.starts[first:last] = [each[0] for each in ranges]
        self.ends[first:last] = [each[1] for each in ranges]
        self.numbers[first:last] = [each[2] for each in ranges]
        self._columns = None

    def find(self, address: int) -> int:
        """The number at an address, `GONE`, or `UNTOLD`."""
        row = bisect_right(self.starts, address) - 1
        return self.numbers[row] if row >= 0 and address < self.ends[row] else UNTOLD

    def find_all(self, addresses: U64) -> I64:
        """The same for many."""
        found = np.full(len(addresses), UNTOLD, np.int64)
        if self.starts:
            if self._columns is None:
                starts, ends = np.array(self.starts, np.uint64), np.array(self.ends, np.uint64)
                self._columns = starts, ends, np.array(self.numbers, np.int64)
            starts, ends, numbers = self._columns
            # Nearly all code is the kernel's own, beyond all of these.
            near = ((addresses >= starts[0]) & (addresses < ends[-1])).nonzero()[0]
            rows = starts.searchsorted(addresses[near], "right") - 1
            inside = addresses[near] < ends[rows]
            found[near[inside]] = numbers[rows[inside]]
        return found

    def forget_gone(self) -> None:
        """Keep only what is there."""
        kept = [row for row, number in enumerate(self.numbers) if number != GONE]
        self.starts = [self.starts[row] for row in kept]
        self.ends = [self.ends[row] for row in kept]
        self.numbers = [self.numbers[row] for row in kept]
        self._columns = None
