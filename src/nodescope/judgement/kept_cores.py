"""Kept cores: spans in which one core had no time left for anybody else, and in which mode.

A queue starves and a watchdog fires whatever keeps the core: the kernel's own work, a user
thread, soft interrupts, interrupts, or a hypervisor that takes it away. A reading of
`/proc/stat` is *full* if idle and waiting time have less than a fifth of it. Full readings on
end are cut into spans of one mode: where one mode has at least `READING_RATIO` for long
enough it is a span of its own; what is left between is one of the mode that has most of it.

`judgement.pegged_cores` answers the narrower question, is it the kernel's work, with shares of
the time that the core had; here time taken by the hypervisor counts as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nodescope.arrays import I64
from nodescope.judgement.pegged_cores import (
    EDGE_NS,
    PEGGED_NS,
    READING_RATIO,
    SPAN_RATIO,
    Mode,
    PeggedCore,
    find_followed,
)
from nodescope.recording.core_readings import STATES, CoreReadings

if TYPE_CHECKING:  # the recorder starts without what only readers need
    from nodescope.recording.window import Window

_STATES_OF: dict[Mode, tuple[str, ...]] = {
    "kernel": ("system",),
    "user": ("user", "nice"),
    "softirq": ("softirq",),
    "irq": ("irq",),
    "steal": ("steal",),
}
MODES: tuple[Mode, ...] = tuple(_STATES_OF)
_NOT_FULL, _MIXED = -2, -1  # of a reading, in place of the number of its mode


@dataclass(frozen=True, slots=True)
class FullSpan:
    """Full readings on end of one core that have the same leading mode, or none."""

    cpu: int
    from_ns: int
    to_ns: int
    label: int
    ticks: tuple[int, ...]  # by mode
    all_ticks: int

    def joined(self, other: FullSpan, label: int) -> FullSpan:
        ticks = tuple(one + two for one, two in zip(self.ticks, other.ticks, strict=True))
        all_ticks = self.all_ticks + other.all_ticks
        return FullSpan(self.cpu, self.from_ns, other.to_ns, label, ticks, all_ticks)

    def is_long(self, least_ns: int) -> bool:
        return self.to_ns - self.from_ns >= least_ns - EDGE_NS


def find_kept_cores(
    readings: Iterable[CoreReadings], window: Window, least_ns: int = PEGGED_NS
) -> list[PeggedCore]:
    """Return the cores that were kept for so long and reach into a window, by core and time."""
    return judge_spans(_find_pieces(readings), window, least_ns)


def collect_spans(
    readings: Iterable[CoreReadings], spans: list[FullSpan]
) -> Iterator[CoreReadings]:
    """Pass readings on, and put the full spans in them into `spans`, for `judge_spans`."""
    for part in readings:
        spans += _find_pieces([part])
        yield part


def judge_spans(
    spans: Iterable[FullSpan], window: Window, least_ns: int = PEGGED_NS
) -> list[PeggedCore]:
    """Return the kept cores among full spans that reach into a window, by core and time."""
    pieces = sorted(spans, key=lambda each: (each.cpu, each.from_ns))
    found = []
    for piece in _join_rest(_join_alike(pieces), least_ns):
        kept = _judge(piece, least_ns)
        if kept is not None and kept.to_ns > window.from_ns and kept.from_ns < window.to_ns:
            found.append(kept)
    return found


def _judge(piece: FullSpan, least_ns: int) -> PeggedCore | None:
    if not piece.is_long(least_ns) or sum(piece.ticks) < SPAN_RATIO * piece.all_ticks:
        return None
    most = piece.label if piece.label >= 0 else int(np.argmax(piece.ticks))
    share = piece.ticks[most] / max(1, piece.all_ticks)
    return PeggedCore(piece.cpu, piece.from_ns, piece.to_ns, share, MODES[most])


def _find_pieces(readings: Iterable[CoreReadings]) -> Iterator[FullSpan]:
    for part in readings:
        same = find_followed(part)
        used, passed = _sum_modes(part.ticks[same + 1] - part.ticks[same])
        label = _label(used, passed)
        full = np.flatnonzero(label != _NOT_FULL)
        if not len(full):
            continue
        cpu, label = part.cpu[same][full], label[full]
        starts = (np.diff(full) != 1) | (np.diff(cpu) != 0) | (np.diff(label) != 0)
        first = np.flatnonzero(np.append(True, starts))
        last = np.append(first[1:], len(full)) - 1
        columns = (
            cpu[first].tolist(),
            part.time_ns[same][full[first]].tolist(),
            part.time_ns[same + 1][full[last]].tolist(),
            label[first].tolist(),
            map(tuple, np.add.reduceat(used[full], first).tolist()),
            np.add.reduceat(passed[full], first).tolist(),
        )
        yield from map(FullSpan, *columns)


def _sum_modes(used: I64) -> tuple[I64, I64]:
    """Return the ticks of each reading by mode, and all that passed."""
    modes = np.zeros((len(used), len(MODES)), np.int64)
    for number, mode in enumerate(MODES):
        for state in _STATES_OF[mode]:
            modes[:, number] += used[:, STATES.index(state)]
    waiting = used[:, STATES.index("idle")] + used[:, STATES.index("iowait")]
    passed: I64 = modes.sum(axis=1) + waiting
    return modes, passed


def _label(used: I64, passed: I64) -> I64:
    """Return the number of the mode that nearly fills each reading, or that none does."""
    label: I64 = np.where(used.sum(axis=1) >= READING_RATIO * passed, _MIXED, _NOT_FULL)
    label[passed <= 0] = _NOT_FULL
    for number in range(len(MODES)):
        label[(used[:, number] >= READING_RATIO * passed) & (passed > 0)] = number
    return label


def _join_alike(pieces: Iterable[FullSpan]) -> list[FullSpan]:
    """Join pieces of one label that touch: a segment may end in the middle of one."""
    joined: list[FullSpan] = []
    for piece in pieces:
        if joined and _touch(joined[-1], piece) and joined[-1].label == piece.label:
            joined[-1] = joined[-1].joined(piece, piece.label)
        else:
            joined.append(piece)
    return joined


def _join_rest(pieces: Sequence[FullSpan], least_ns: int) -> list[FullSpan]:
    """Join the pieces that touch and are not long enough to stand for one mode alone."""
    joined: list[FullSpan] = []
    open_end = False  # whether the last one may go on
    for piece in pieces:
        alone = piece.label >= 0 and piece.is_long(least_ns)
        if open_end and not alone and _touch(joined[-1], piece):
            joined[-1] = joined[-1].joined(piece, _MIXED)
        else:
            joined.append(piece)
        open_end = not alone
    return joined


def _touch(before: FullSpan, after: FullSpan) -> bool:
    return before.cpu == after.cpu and after.from_ns <= before.to_ns
