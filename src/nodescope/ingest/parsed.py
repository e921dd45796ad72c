"""Rows that a parser of another tool's format passes on, before they are an archive's.

Samples come as columns of numbers into `ParsedNames`, which lists each function, path
and comm once; rows of events and cores come as plain lists. Times are those of
the file: of whatever clock the tool read, or of the wall.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from nodescope.arrays import I64
from nodescope.numbering import Sequences
from nodescope.records.table import Row

KERNEL_MODULE = "[kernel]"
UNKNOWN = "[unknown]"
UNKNOWN_CPU = -1
UNKNOWN_PID = -1


class ParsedFrame(NamedTuple):
    """A function, or as much as is known of one."""

    module: str
    name: str
    kernel: bool


UNKNOWN_FRAME = ParsedFrame(UNKNOWN, UNKNOWN, False)


class ParsedNames:
    """Functions, paths of them (outermost first) and comms, each listed once.

    Has the lists of `formats.Names`, and numbers what it has not met yet. Frame 0
    is the unknown one and path 0 the empty one. Lists only grow.
    """

    def __init__(self) -> None:
        self.frames: list[ParsedFrame] = [UNKNOWN_FRAME]
        self.paths = Sequences()
        self.in_kernel: list[bool] = [False]  # by path: whether its innermost frame is kernel code
        self.comms: list[str] = []
        self._frame_numbers: dict[ParsedFrame, int] = {UNKNOWN_FRAME: 0}
        self._path_numbers: dict[tuple[int, ...], int] = {(): 0}
        self._comm_numbers: dict[str, int] = {}

    def frame(self, frame: ParsedFrame) -> int:
        """The number of a function."""
        number = self._frame_numbers.get(frame)
        if number is None:
            number = self._frame_numbers[frame] = len(self.frames)
            self.frames.append(frame)
        return number

    def path(self, frames: tuple[int, ...]) -> int:
        """The number of a path of functions, outermost first."""
        number = self._path_numbers.get(frames)
        if number is None:
            number = self._path_numbers[frames] = len(self.paths)
            self.paths.append(frames)
            self.in_kernel.append(bool(frames) and self.frames[frames[-1]].kernel)
        return number

    def comm(self, name: str) -> int:
        """The number of a comm."""
        number = self._comm_numbers.get(name)
        if number is None:
            number = self._comm_numbers[name] = len(self.comms)
            self.comms.append(name)
        return number


def collapse_unknown(frames: list[int]) -> list[int]:
    """One unknown frame where several follow each other, as the recorder has it."""
    return [
        frame
        for position, frame in enumerate(frames)
        if frame or not position or frames[position - 1]
    ]


@dataclass(frozen=True, slots=True)
class ParsedSamples:
    """Samples as columns; `comm` and `path` are numbers in `names`."""

    names: ParsedNames
    time_ns: I64
    cpu: I64
    pid: I64
    tid: I64
    comm: I64
    kernel_mode: I64
    path: I64

    def __len__(self) -> int:
        return len(self.time_ns)


class Reading(NamedTuple):
    """A row of `cores`: counters in the order of `CORE_STATES`."""

    time_ns: int
    cpu: int
    ticks: tuple[int, ...]


@dataclass(slots=True)
class Notes:
    """The remarks of a parser beside its rows."""

    offset: int = 0  # how far the input was read, in bytes of its unpacked text
    written_ns: int | None = None  # the file's last change; None where it is not known
    stopped: str | None = None  # why it was not read to its end
    skipped: Counter[str] = field(default_factory=Counter)  # what was left out, by reason
    remarks: list[str] = field(default_factory=list)  # what was assumed
    lost: int = 0  # samples the tool itself says it lost
    out_of_order: int = 0  # samples earlier than the one before them
    truncated: int = 0  # samples whose stack is as deep as the kernel lets one be
    facts: dict[str, str] = field(default_factory=dict)  # what the file says of its node
    rows: list[Row] = field(default_factory=list)  # of other tables than what it yields
    observers: set[str] = field(default_factory=set)  # whose work the file stands for

    def stop(self, offset: int, reason: str) -> None:
        """Note where the input stopped being what it should be; the first place counts."""
        if self.stopped is None:
            self.offset, self.stopped = offset, reason

    def remark(self, text: str) -> None:
        """Say something once."""
        if text not in self.remarks:
            self.remarks.append(text)
