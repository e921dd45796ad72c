"""Who makes cgroups that stay after their removal: events of cgroups, added up by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from nodescope.sources.cgroups.churn import ChurnEvent
from nodescope.sources.cgroups.hierarchies import UNIFIED
from nodescope.sources.cgroups.name_pattern import name_pattern, split_path
from nodescope.sources.cgroups.watch import Heard

_MOST_PIDS = 100  # named


@dataclass(slots=True)
class Maker:
    """Cgroups of one kind: parent, pattern of names, and the program that makes them."""

    parent: str
    pattern: str
    comm: str | None
    pids: set[int] = field(default_factory=set)
    made: int = 0
    removed: int = 0
    unreleased: int = 0  # removed, and not given up by the kernel
    ran: Counter[str] = field(default_factory=Counter)  # what was moved into them
    example: str = ""


@dataclass(slots=True)
class _Life:
    maker: Maker
    removed_ns: int | None = None


class Makers:
    """Takes events in the order of time; says who left what behind."""

    def __init__(self, *, v2: bool) -> None:
        self._v2 = v2
        self._makers: dict[tuple[str, str, str | None], Maker] = {}
        self._lives: dict[int, _Life] = {}

    def take(self, events: Iterable[ChurnEvent]) -> None:
        """Account for what happened in the memory controller's hierarchy."""
        for event in events:
            names = event.hierarchy.split(",")
            if UNIFIED in names if self._v2 else "memory" in names:
                self._take(event)

    def tell(self, end_ns: int, grace_ns: int) -> list[Maker]:
        """Those that leave most behind first.

        A cgroup removed less than `grace_ns` before the end may just need its time:
        it does not count as left behind.
        """
        for maker in self._makers.values():
            maker.unreleased = 0
        for life in self._lives.values():
            if life.removed_ns is not None and life.removed_ns <= end_ns - grace_ns:
                life.maker.unreleased += 1
        return sorted(
            self._makers.values(), key=lambda each: (-each.unreleased, -each.made, each.parent)
        )

    def _take(self, event: ChurnEvent) -> None:
        life = self._lives.get(event.identity)
        if event.kind == "made" or (life is None and event.kind == "removed"):
            life = self._lives[event.identity] = _Life(self._maker(event))
            life.maker.made += event.kind == "made"
        if life is None:
            return
        if event.kind == "removed":
            life.removed_ns = event.time_ns
            life.maker.removed += 1
        elif event.kind == "released":
            del self._lives[event.identity]
        elif event.kind == "attached" and event.comm:
            life.maker.ran[event.comm] += 1

    def _maker(self, event: ChurnEvent) -> Maker:
        """Who made it; of one that was made before we looked, who removes it."""
        parent, name = split_path(event.path)
        key = parent, name_pattern(name), event.comm
        maker = self._makers.setdefault(key, Maker(*key, example=event.path))
        if event.pid is not None and len(maker.pids) < _MOST_PIDS:
            maker.pids.add(event.pid)
        return maker


def count_unreleased(makers: Iterable[Maker], heard: Heard) -> dict[str, int]:
    """By parent, those that were removed and are still held; scans hear of no release."""
    if heard.way == "scan":
        return {}
    counts: Counter[str] = Counter()
    for maker in makers:
        counts[maker.parent] += maker.unreleased
    return dict(+counts)
