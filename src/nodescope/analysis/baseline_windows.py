"""The windows that a baseline is cut into, where it was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nodescope.analysis.features import Windows
from nodescope.quantities import SECOND_NS
from nodescope.recording.coverage import takes_samples
from nodescope.recording.part import Part

SHORTEST_NS = SECOND_NS  # of a baseline window
FEWEST = 30  # a long window is compared in pieces, so that the baseline has this many
_NEIGHBOURS_NS = SECOND_NS  # segments this close are one recording


def _recorded(segments: Iterable[Part]) -> list[tuple[int, int]]:
    """Return the wall times in which samples were taken, in order, without overlaps.

    A segment of an imported log has no samples: of its time nothing is known.
    """
    sampled = (segment for segment in segments if takes_samples(segment))
    spans = sorted((segment.wall_from_ns, segment.wall_to_ns) for segment in sampled)
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged and start <= merged[-1][1] + _NEIGHBOURS_NS:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def measure_recorded(segments: Sequence[Part], span: tuple[int, int]) -> int:
    """How much of `span` was recorded; to within a second of its ends, all of it was."""
    total = 0
    for start, end in _recorded(segments):
        inside = min(end, span[1]) - max(start, span[0])
        if inside > 0:
            total += inside
    return span[1] - span[0] if total + _NEIGHBOURS_NS >= span[1] - span[0] else total


def lay_windows(
    span: tuple[int, int],
    against: tuple[int, int],
    segments: Sequence[Part],
    *,
    by_second: bool = False,
) -> Windows:
    """Windows that fill the baseline up to its end; used where all of it was recorded.

    With `by_second` each lasts whole seconds, so that all have as many of a roll-up.
    """
    length = against[1] - against[0]
    recorded = measure_recorded(segments, against)
    width = max(SHORTEST_NS, min(span[1] - span[0], recorded // FEWEST))
    if by_second:
        width -= width % SECOND_NS
    number = max(1, length // width)
    start = against[1] - number * width
    edges = start + np.arange(number + 1, dtype=np.int64) * width
    used = np.zeros(number, bool)
    slack = min(_NEIGHBOURS_NS, width // 10)
    for first, last in _recorded(segments):
        used |= (edges[:-1] >= first - slack) & (edges[1:] <= last + slack)
    for segment in segments:
        for gap in segment.description.gaps:
            if gap.cpu is None and gap.source in ("all", "samples"):
                missing = np.minimum(edges[1:], gap.to_ns) - np.maximum(edges[:-1], gap.from_ns)
                used &= missing * 10 < width
    return Windows(start, width, used)
