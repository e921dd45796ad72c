"""How far a recording can be trusted: what was lost, unnamed, cut off, or not seen.

A view shows what is there; this says what is not. The counts of frames weigh
each frame by its samples, because an unnamed function that never runs is no loss.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from nodescope.analysis.call_tree import CallTree
from nodescope.analysis.filter import Filter
from nodescope.analysis.sampled_time import derive_idle_share
from nodescope.archive.description import Description
from nodescope.arrays import I64, Bool
from nodescope.recording.part import Part
from nodescope.recording.recording import Recording
from nodescope.recording.sample_columns import SampleColumns
from nodescope.recording.window import Window
from nodescope.records.recorder_tables import Gap
from nodescope.records.tables import FOLDED

DEEPEST = 127  # kernel.perf_event_max_stack: a deeper stack is cut there
_THROTTLED = "throttled"
_MAX_REASONS, _MAX_REASON = 32, 60  # an archive may come from anybody


@dataclass(frozen=True, slots=True)
class ClockStep:
    """The wall clock was set."""

    time_ns: int  # by the clock after it
    by_ns: int


@dataclass
class Quality:
    """The gaps and losses of a window. Shares are None where there is nothing to take them of."""

    samples: int = 0
    lost: int = 0  # records, in the rings
    kernel_frames: int = 0
    kernel_unresolved: int = 0
    user_frames: int = 0
    user_unresolved: int = 0
    unresolved_reasons: dict[str, int] | None = None  # places; None if not told
    truncated_stacks: int = 0  # samples as deep as the kernel goes
    folded_stacks: int = 0  # samples whose stack lacks its middle
    idle_task_samples: int = 0  # of pid 0
    throttled: int = 0
    idle_share: float | None = None  # of the cores' time
    clock_steps: list[ClockStep] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    late_ns: int | None = None  # the recorder, at worst; None if not known

    @property
    def lost_share(self) -> float | None:
        return _share(self.lost, self.lost + self.samples)

    @property
    def kernel_unresolved_share(self) -> float | None:
        return _share(self.kernel_unresolved, self.kernel_frames)

    @property
    def user_unresolved_share(self) -> float | None:
        return _share(self.user_unresolved, self.user_frames)

    @property
    def truncated_share(self) -> float | None:
        return _share(self.truncated_stacks, self.samples)

    @property
    def folded_share(self) -> float | None:
        return _share(self.folded_stacks, self.samples)

    @property
    def unseen_ns(self) -> int:
        """Time in which nothing at all was recorded."""
        spans = sorted((gap.from_ns, gap.to_ns) for gap in self.gaps if gap.source == "all")
        total, reached = 0, 0
        for start, end in spans:
            total += max(0, end - max(start, reached))
            reached = max(reached, end)
        return total


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def assess(
    recording: Recording, window: Window, chosen: Filter, samples: Iterable[SampleColumns]
) -> Quality:
    """Assess a window; `samples` are those of it, part by part."""
    quality = Quality()
    for columns in samples:
        _count_samples(columns, chosen, quality)
    if not window.length_ns:
        return quality
    parts = recording.overlapping(window)
    quality.unresolved_reasons = _reasons(parts)
    before: Description | None = None
    for part in parts:
        description = part.description
        quality.lost += _lost(part, before, window)
        quality.clock_steps += _steps(description, window)
        late_ns = None if description.cost is None else description.cost.late_max_ns
        if late_ns is not None:
            quality.late_ns = max(quality.late_ns or 0, late_ns)
        before = description
    quality.throttled = len(recording.events(window, _THROTTLED))
    quality.gaps = recording.gaps(window)
    quality.idle_share = derive_idle_share(recording, window)
    return quality


def unresolved(names: Sequence[str]) -> Bool:
    """Which functions have no name: an offset, or `[unknown]`."""
    return np.fromiter((name.startswith(("+0x", "[unknown")) for name in names), bool, len(names))


def _count_samples(part: SampleColumns, chosen: Filter, quality: Quality) -> None:
    counts = chosen.counts(part)
    rows = np.flatnonzero(counts)
    stacks, weight = part.profile_stack[rows], counts[rows]
    tree = CallTree(part.depth, part.frame)
    unnamed = unresolved(part.frame_names)
    kernel = part.frame_kernel
    quality.samples += int(weight.sum())
    for flags, name in (
        (kernel, "kernel_frames"),
        (kernel & unnamed, "kernel_unresolved"),
        (~kernel, "user_frames"),
        (~kernel & unnamed, "user_unresolved"),
    ):
        on_path = _along_paths(tree, flags[part.frame].astype(np.int64))
        setattr(quality, name, getattr(quality, name) + int((on_path[stacks] * weight).sum()))
    quality.truncated_stacks += int(weight[part.depth[stacks] + 1 >= DEEPEST].sum())
    quality.folded_stacks += _count_folded(part, tree, stacks, weight)
    pid = part.pid
    passing = chosen.samples(part)
    quality.idle_task_samples += int(
        np.count_nonzero((pid if passing is None else pid[passing]) == 0)
    )


def _count_folded(part: SampleColumns, tree: CallTree, stacks: I64, weight: I64) -> int:
    """Count the samples with the frame that stands for functions the recorder left out."""
    if FOLDED not in part.modules:
        return 0
    folded = part.frame_module == part.modules.index(FOLDED)
    on_path = _along_paths(tree, folded[part.frame].astype(np.int64))
    return int(weight[on_path[stacks] > 0].sum())


def _reasons(parts: Sequence[Part]) -> dict[str, int] | None:
    """Return why places have no name, as each run of the recorder last reported in these parts."""
    said: dict[tuple[str, int], dict[str, int]] = {}
    for part in parts:
        texts = part.read("heartbeats", ["unresolved"]).column("unresolved").to_pylist()
        told = [text for text in texts if text is not None]
        if told:
            said[part.description.run] = parse_reasons(told[-1])
    if not said:
        return None
    total: Counter[str] = Counter()
    for reasons in said.values():
        total.update(reasons)
    return dict(total.most_common(_MAX_REASONS))


def parse_reasons(text: str) -> dict[str, int]:
    """Counts by reason from a heartbeat; what is none is passed over."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {
        reason[:_MAX_REASON]: count
        for reason, count in content.items()
        if type(count) is int and 0 < count < 1 << 63
    }


def _along_paths(tree: CallTree, own: I64) -> I64:
    """Sums from the outermost caller down to each row."""
    sums = own.copy()
    for rows in tree.levels[1:]:
        sums[rows] += sums[tree.parent[rows]]
    return sums


def _lost(part: Part, before: Description | None, window: Window) -> int:
    """Return how far the counter of lost records rose between heartbeats in the window."""
    table = part.read("heartbeats", ["time_ns", "lost"])
    lost = table.column("lost").to_numpy().astype(np.float64)
    counted = np.flatnonzero(~np.isnan(lost))  # an import has counted none
    if not len(counted):
        return 0
    times = part.wall_ns(table.column("time_ns").to_numpy())
    start = 0 if part.description.start.first_of_run else int(lost[counted[0]])
    if before is not None and before.cost is not None and before.run == part.description.run:
        start = before.cost.lost_last or 0
    rises = np.maximum(np.diff(lost[counted], prepend=start), 0)
    inside = (times[counted] >= window.from_ns) & (times[counted] < window.to_ns)
    return int(rises[inside].sum())


def _steps(description: Description, window: Window) -> list[ClockStep]:
    steps = [
        ClockStep(since + offset, offset - earlier)
        for (_, earlier), (since, offset) in pairwise(description.clock)
    ]
    return [step for step in steps if window.from_ns <= step.time_ns < window.to_ns]
