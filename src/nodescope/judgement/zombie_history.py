"""How dying memory cgroups moved in a recording: the tables `memory_cgroups` and `cgroup_churn`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodescope.judgement.zombies import Nature, Trend, find_nature, find_trend
from nodescope.recording.part import Part
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window


@dataclass(frozen=True, slots=True)
class History:
    """Looks on the wall clock, and what became of cgroups that were removed meanwhile."""

    times_ns: list[int]
    dying: list[int]
    removed: int  # cgroups removed by everybody, where that was heard of
    unreleased: int  # of them, those still held 15 s later, at the end

    @property
    def trend(self) -> Trend | None:
        """How they moved."""
        return find_trend(self.times_ns, self.dying)

    @property
    def nature(self) -> Nature:
        """Leak or cache."""
        return find_nature(self.times_ns, self.dying, self.removed, self.unreleased)


def read_history(recording: Recording, window: Window) -> History:
    """Read what was recorded in a window."""
    looks: list[tuple[int, int]] = []
    removed = 0
    held: dict[tuple[str, str, str | None], int] = {}
    for segment in recording.overlapping(window):
        table = segment.read("memory_cgroups", ["time_ns", "dying"])
        times = segment.wall_ns(table.column("time_ns").to_numpy())
        values = table.column("dying").to_pylist()
        looks += [
            (int(moment), value)
            for moment, value in zip(times, values, strict=True)
            if value is not None and window.from_ns <= moment < window.to_ns
        ]
        removed += _read_churn(segment, window, held)
    looks.sort()
    return History(
        [moment for moment, _ in looks],
        [value for _, value in looks],
        removed,
        sum(held.values()),
    )


def _read_churn(segment: Part, window: Window, held: dict[tuple[str, str, str | None], int]) -> int:
    names = ["time_ns", "parent", "pattern", "maker", "removed", "unreleased"]
    table = segment.read("cgroup_churn", names)
    times = segment.wall_ns(table.column("time_ns").to_numpy())
    inside = np.flatnonzero((times >= window.from_ns) & (times < window.to_ns))
    if not len(inside):
        return 0
    columns = {name: table.column(name).to_pylist() for name in names[1:]}
    removed = 0
    for at in inside[np.argsort(times[inside], kind="stable")].tolist():
        removed += columns["removed"][at]
        key = columns["parent"][at], columns["pattern"][at], columns["maker"][at]
        if columns["unreleased"][at] is not None:
            held[key] = columns["unreleased"][at]
    return removed
