"""Who makes cgroups, under which parent, how often, and which are never given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nodescope.analysis.window import SECOND_NS, Window, overlapping
from nodescope.archive.reader import Segment
from nodescope.sources.cgroup_pattern import name_pattern

_COLUMNS = (
    "time_ns", "parent", "pattern", "maker", "maker_pid", "workload", "made", "removed",
    "released", "attached", "unreleased", "way",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Maker:
    """One maker of cgroups of one pattern under one parent, or parents of one pattern."""

    parent: str
    pattern: str
    maker: str | None  # None: not known
    pids: tuple[int, ...]
    workloads: tuple[str, ...]
    parents: int
    made: int
    removed: int
    released: int
    attached: int
    unreleased: int | None  # at the end; None: not known, directories were compared
    seconds: float

    @property
    def per_minute(self) -> float:
        """Made or removed, whichever is more: of a loop both."""
        return max(self.made, self.removed) * 60 / self.seconds if self.seconds > 0 else 0.0

    @property
    def held_share(self) -> float | None:
        """Of those removed, how many were not released; None if not known."""
        if self.unreleased is None or not self.removed:
            return None
        return min(1.0, max(0, self.removed - self.released) / self.removed)


@dataclass(slots=True)
class _Sum:
    parents: set[str] = field(default_factory=set)
    pids: dict[int, None] = field(default_factory=dict)
    workloads: dict[str, None] = field(default_factory=dict)
    made: int = 0
    removed: int = 0
    released: int = 0
    attached: int = 0
    unreleased: dict[str, int] = field(default_factory=dict)  # the latest, by parent

    def add(self, row: Mapping[str, Any]) -> None:
        self.parents.add(row["parent"])
        self.made += row["made"]
        self.removed += row["removed"]
        self.released += row["released"]
        self.attached += row["attached"]
        if row["maker_pid"] is not None:
            self.pids[row["maker_pid"]] = None
        if row["workload"] is not None:
            self.workloads[row["workload"]] = None
        if row["unreleased"] is not None:
            self.unreleased[row["parent"]] = row["unreleased"]


def find_makers(segments: Sequence[Segment], window: Window) -> list[Maker]:
    """All makers of the window: first those whose cgroups stay, then the busiest."""
    touched = overlapping(segments, window)
    return rank_makers(_read_rows(touched, window), _seconds(touched, window))


def rank_makers(rows: Iterable[Mapping[str, Any]], seconds: float) -> list[Maker]:
    """Add up rows of `cgroup_churn`, in the order of time."""
    sums: dict[tuple[str, str, str | None], _Sum] = {}
    for row in rows:
        parent = name_pattern(row["parent"])
        sums.setdefault((parent, row["pattern"], row["maker"]), _Sum()).add(row)
    makers = []
    for (parents, pattern, maker), added in sums.items():
        one = next(iter(added.parents))
        makers.append(
            Maker(
                parent=one if len(added.parents) == 1 else parents,
                pattern=pattern,
                maker=maker,
                pids=tuple(added.pids),
                workloads=tuple(added.workloads),
                parents=len(added.parents),
                made=added.made,
                removed=added.removed,
                released=added.released,
                attached=added.attached,
                unreleased=sum(added.unreleased.values()) if added.unreleased else None,
                seconds=seconds,
            )
        )
    return sorted(makers, key=lambda each: (-(each.unreleased or 0), -max(each.made, each.removed)))


def _read_rows(segments: Iterable[Segment], window: Window) -> Iterable[Mapping[str, Any]]:
    for segment in segments:
        table = segment.read("cgroup_churn", list(_COLUMNS))
        times = segment.wall_ns(table.column("time_ns").to_numpy())
        inside = np.flatnonzero((times >= window.from_ns) & (times < window.to_ns))
        columns = {name: table.column(name).to_pylist() for name in _COLUMNS} if len(inside) else {}
        for at in inside[np.argsort(times[inside], kind="stable")].tolist():
            yield {name: values[at] for name, values in columns.items()}


def _seconds(segments: Iterable[Segment], window: Window) -> float:
    """How much of the window was recorded."""
    recorded = sum(
        max(
            0,
            min(segment.wall_to_ns, window.to_ns) - max(segment.wall_from_ns, window.from_ns),
        )
        for segment in segments
    )
    return recorded / SECOND_NS
