"""The kernel's functions by address and time.

`/proc/kallsyms` says what there is when it is read. From then on the kernel tells of BPF
programs and trampolines that come and go (`kernel_code`); these are followed record by
record. Of modules it does not tell: the file is read again when an address lies in nothing
that is known, once a minute at most, since that takes some 100 ms of CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

import numpy as np

from nodescope.arrays import I64, U64
from nodescope.errors import SourceError
from nodescope.numbering import distinct
from nodescope.perf.decode import Chains
from nodescope.perf.kernel_code import GONE, UNTOLD, ChangedCode, CodeChange
from nodescope.symbols.kallsyms import LiveKernelSymbols

_REREAD_S = 60.0
_HOPELESS_S = 600.0
_MAX_HOPELESS = 4096
_MAX_RANGES = 4096  # of changed code; more is read anew as a whole
_PAGE_BITS = np.uint64(12)
_NONE = np.empty(0, np.int64)


class KernelNames:
    """Rows are those of the file, and after them the names that came since."""

    def __init__(self, proc: Path = Path("/proc"), clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._live = LiveKernelSymbols(proc, _REREAD_S, clock)
        self._changed = ChangedCode()
        self._frames: list[tuple[str, str]] = []  # of code that came, by number
        self._numbers: dict[tuple[str, str], int] = {}
        self._before = self._changed  # as it was before the changes of this batch
        self._changes: list[tuple[int, int, int, int]] = []  # of this batch: time, range, number
        self._moved = ChangedCode()  # what changed since `restart`
        self._times: list[int] = []  # of these changes
        self._hopeless: set[int] = set()  # pages that the file does not explain
        self._hopeless_since = clock()
        self._doubtful = False
        self._is_reread = False  # since the last batch
        self.generation = 0

    def follow(self, changes: Sequence[CodeChange]) -> None:
        """Take in what came and went in the batch that is looked up next."""
        self._changes = []
        if self._is_reread:
            self._is_reread = False
            if GONE in self._changed.numbers:
                self._changed.forget_gone()
                self.generation += 1  # the file may name what is in those places now
        if not changes:
            return
        self._before = self._changed.copy()
        for change in sorted(changes, key=lambda each: each.time_ns):
            number = GONE if change.gone else self._number(change.module, change.name)
            self._changes.append((change.time_ns, change.start, change.end, number))
            self._changed.cover(change.start, change.end, number)
            self._moved.cover(change.start, change.end, number)
        self._times += [time_ns for time_ns, *_ in self._changes]
        if len(self._changed.starts) > _MAX_RANGES:
            self._doubtful = True

    def doubt(self) -> None:
        """Records were lost, maybe of code that went: read all anew when it may be done."""
        self._doubtful = True

    def restart(self) -> None:
        """Nothing that was looked up is remembered any more: no need to tell it from the rest."""
        self._moved, self._times = ChangedCode(), []
        if len(self._frames) > _MAX_RANGES:
            self._renumber()

    # -- asking --------------------------------------------------------------

    def find_eras(self, chains: Chains, times_ns: I64) -> tuple[I64, I64]:
        """Chains through code that came or went since `restart`, and how often it had by then."""
        if not self._times:
            return _NONE, _NONE
        at = (self._moved.find_all(chains.addresses) != UNTOLD).nonzero()[0]
        rows = distinct((chains.starts + chains.lengths).searchsorted(at, "right"))
        eras = np.array(self._times, np.int64).searchsorted(times_ns[rows], "right")
        return rows, eras

    def lookup(self, addresses: U64, times_ns: I64) -> I64:
        """The row of what was at each address at that time, or -1."""
        rows = self._find(addresses, times_ns)
        unknown = addresses[rows < 0]
        if (len(unknown) or self._doubtful) and self._read_again(unknown):
            rows = self._find(addresses, times_ns)
            self._hopeless.update((addresses[rows < 0] >> _PAGE_BITS).tolist())
        return rows

    def frame(self, row: int) -> tuple[str, str]:
        """Module and name of a row."""
        known = self._live.current
        if row >= len(known.starts):
            return self._frames[row - len(known.starts)]
        return known.module(row), known.name(row)

    def _find(self, addresses: U64, times_ns: I64) -> I64:
        told = self._changed.find_all(addresses)
        if self._changes:
            early = ((told != UNTOLD) & (times_ns < self._changes[-1][0])).nonzero()[0]
            told[early] = self._find_then(addresses[early], times_ns[early])
        rows = self._live.current.lookup(addresses)
        rows[told == GONE] = -1
        came = told >= 0
        rows[came] = told[came] + len(self._live.current.starts)
        return rows

    def _find_then(self, addresses: U64, times_ns: I64) -> I64:
        """What was there at a time within this batch: its changes, made once more in order."""
        found = np.empty(len(addresses), np.int64)
        then = self._before.copy()
        changes = iter(self._changes)
        change = next(changes, None)
        for row in times_ns.argsort(kind="stable").tolist():
            while change is not None and change[0] <= times_ns[row]:
                then.cover(*change[1:])
                change = next(changes, None)
            found[row] = then.find(int(addresses[row]))
        return found

    # -- knowing -------------------------------------------------------------

    def _number(self, module: str, name: str) -> int:
        number = self._numbers.get((module, name))
        if number is None:
            number = self._numbers[module, name] = len(self._frames)
            self._frames.append((module, name))
        return number

    def _renumber(self) -> None:
        """Forget the names of what went."""
        frames, self._frames, self._numbers = self._frames, [], {}
        numbers = self._changed.numbers
        self._changed.numbers = [
            each if each == GONE else self._number(*frames[each]) for each in numbers
        ]
        self._changed = self._changed.copy()
        self._changes = []
        self.generation += 1

    def _read_again(self, unknown: U64) -> bool:
        """Read the file anew, if it may say more and was not read lately; whether it was."""
        now = self._clock()
        if now - self._hopeless_since >= _HOPELESS_S or len(self._hopeless) > _MAX_HOPELESS:
            self._hopeless.clear()
            self._hopeless_since = now
        pages = set((unknown >> _PAGE_BITS).tolist())
        if not self._doubtful and pages <= self._hopeless:
            return False
        try:
            if not self._live.refresh():
                return False
        except SourceError:
            return False  # what was known stays true
        if self._doubtful:
            self._changed, self._changes = ChangedCode(), []
        # What went is the file's to tell from now on; but samples of this batch may be older.
        self._is_reread = True
        self._doubtful = False
        self.generation += 1
        return True
