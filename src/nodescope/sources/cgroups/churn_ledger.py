"""Keeps account of cgroups that come and go: by parent, pattern of name and maker.

On v1 one container is a cgroup in each of ten hierarchies. They are counted
apart and told as one: of each figure the largest. A cgroup that was removed is
remembered until the kernel releases it; after 15 s it counts as unreleased,
which normally never happens (a release takes some ten milliseconds). What is
remembered is bounded, whatever a node does: beyond the bounds parents and
patterns are told more coarsely, and single cgroups become numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.quantities import SECOND_NS
from nodescope.sources.cgroups.churn import ChurnEvent
from nodescope.sources.cgroups.name_pattern import name_pattern, split_path

GRACE_NS = 15 * SECOND_NS  # hundreds of times what a release takes, on a busy node too
_MAX_LIVE = 20_000
_MAX_REMOVED = 20_000
_MAX_GROUPS = 2_000  # beyond them, parents are told by pattern
_MAX_PATTERNS = 64  # under one parent; beyond them all names are `*`
_MAX_COARSE = 4_000  # beyond them, everything is told of the root
_IDLE_TELLINGS = 30


@dataclass(frozen=True, slots=True)
class Churned:
    """What happened to cgroups of one kind since the last time it was told."""

    parent: str
    pattern: str
    maker: str | None
    maker_pid: int | None  # if it was one and the same
    workload: str | None  # what was last attached
    made: int
    removed: int
    released: int
    attached: int
    unreleased: int  # removed over 15 s ago and not released, now


@dataclass(slots=True)
class _Group:
    """Cgroups of one hierarchy, parent, pattern and maker."""

    parent: str
    pattern: str
    maker: str | None
    pid: int | None = None
    pids: int = 0  # different ones since the last telling: 0, 1 or more
    workload: str | None = None
    made: int = 0
    removed: int = 0
    released: int = 0
    attached: int = 0
    members: int = 0  # remembered one by one, live or removed
    unreleased: int = 0
    nameless: int = 0  # of them, those that are no longer remembered one by one
    told: int = 0  # how many were unreleased when it was last told
    idle: int = 0  # tellings without anything new

    @property
    def moved(self) -> bool:
        return bool(self.made or self.removed or self.released or self.attached)

    def by(self, pid: int | None) -> None:
        if pid is not None and pid != self.pid:
            self.pid = pid
            self.pids += 1
        elif self.pids == 0:
            self.pids = 1


_Key = tuple[str, str, str, str | None]  # hierarchy, parent, pattern, maker
_Id = tuple[str, int]


class ChurnLedger:
    """Takes events in the order of time; tells what they add up to."""

    def __init__(self, *, releases: bool = True) -> None:
        """Without `releases`, none is ever heard of: nothing is counted as unreleased."""
        self._releases = releases
        self._nameless = 0
        self._groups: dict[_Key, _Group] = {}
        self._patterns: dict[str, set[str]] = {}
        self._live: dict[_Id, _Group] = {}
        self._removed: dict[_Id, tuple[int, _Group]] = {}  # in the order of their removal
        self._held: dict[_Id, _Group] = {}  # removed longer ago than is normal

    def take(self, events: Iterable[ChurnEvent]) -> None:
        """Account for what happened."""
        for event in events:
            if event.kind == "made":
                self._made(event)
            elif event.kind == "removed":
                self._remove(event)
            elif event.kind == "released":
                self._release(event)
            else:
                group = self._live.get((event.hierarchy, event.identity))
                if group is not None:
                    group.attached += 1
                    group.workload = event.comm or group.workload

    def tell(self, now_ns: int, *, whole: bool = False) -> list[Churned]:
        """What changed since the last time; `whole`: also what is unreleased and did not change."""
        self._ripen(now_ns)
        told: dict[tuple[str, str, str | None], list[_Group]] = {}
        for group in self._groups.values():
            if group.moved or group.unreleased != group.told or (whole and group.unreleased):
                told.setdefault((group.parent, group.pattern, group.maker), []).append(group)
        rows = [_merge(groups) for groups in told.values()]
        self._settle()
        return rows

    def _made(self, event: ChurnEvent) -> None:
        group = self._group(event)
        group.made += 1
        group.by(event.pid)
        identity = (event.hierarchy, event.identity)
        stale = identity if identity in self._live else None  # its removal was lost
        if stale is None and len(self._live) >= _MAX_LIVE:
            stale = next(iter(self._live))
        if stale is not None:
            self._live.pop(stale).members -= 1
        self._live[identity] = group
        group.members += 1

    def _remove(self, event: ChurnEvent) -> None:
        identity = (event.hierarchy, event.identity)
        group = self._live.pop(identity, None)
        if group is None:
            group = self._group(event)
            group.by(event.pid)
            group.members += 1
        group.removed += 1
        if not self._releases:
            group.members -= 1
            return
        if identity in self._removed:  # its release was lost
            self._removed.pop(identity)[1].members -= 1
        elif len(self._removed) >= _MAX_REMOVED:
            self._hold(next(iter(self._removed)))
        self._removed[identity] = (event.time_ns, group)

    def _release(self, event: ChurnEvent) -> None:
        identity = (event.hierarchy, event.identity)
        if (removed := self._removed.pop(identity, None)) is not None:
            group = removed[1]
            group.members -= 1
        elif (held := self._held.pop(identity, None)) is not None:
            group = held
            group.members -= 1
            group.unreleased -= 1
        else:
            found = self._find_nameless(event)
            if found is None:
                return  # removed before we watched
            group = found
            group.nameless -= 1
            group.unreleased -= 1
            self._nameless -= 1
        group.released += 1

    def _find_nameless(self, event: ChurnEvent) -> _Group | None:
        if not self._nameless:
            return None
        parent, name = split_path(event.path)
        pattern = name_pattern(name)
        for (hierarchy, *_), group in self._groups.items():
            here = hierarchy == event.hierarchy and group.parent == parent
            if group.nameless and here and group.pattern in (pattern, "*"):
                return group
        return None

    def _ripen(self, now_ns: int) -> None:
        """Those removed over 15 s ago are unreleased from now on."""
        while self._removed:
            identity, (removed_ns, _) = next(iter(self._removed.items()))
            if removed_ns > now_ns - GRACE_NS:
                break
            self._hold(identity)

    def _hold(self, identity: _Id) -> None:
        _, group = self._removed.pop(identity)
        group.unreleased += 1
        if len(self._held) < _MAX_REMOVED:
            self._held[identity] = group
        else:
            group.members -= 1
            group.nameless += 1
            self._nameless += 1

    def _group(self, event: ChurnEvent) -> _Group:
        parent, name = split_path(event.path)
        pattern = name_pattern(name)
        if len(self._groups) >= _MAX_GROUPS:
            parent = name_pattern(parent)
        if len(self._groups) >= _MAX_COARSE:
            parent, pattern = "/", "*"
        patterns = self._patterns.setdefault(parent, set())
        if pattern not in patterns and len(patterns) >= _MAX_PATTERNS:
            pattern = "*"
        patterns.add(pattern)
        key = (event.hierarchy, parent, pattern, event.comm)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(parent, pattern, event.comm)
        return group

    def _settle(self) -> None:
        """Begin the next interval; forget groups in which nothing is left or happens."""
        for key, group in list(self._groups.items()):
            group.idle = 0 if group.moved else group.idle + 1
            group.made = group.removed = group.released = group.attached = group.pids = 0
            group.told = group.unreleased
            if group.idle > _IDLE_TELLINGS and not (group.members or group.unreleased):
                del self._groups[key]
        if len(self._patterns) > 2 * len(self._groups) + 16:
            self._patterns = {}
            for group in self._groups.values():
                self._patterns.setdefault(group.parent, set()).add(group.pattern)


def _merge(groups: list[_Group]) -> Churned:
    """The same cgroups in several hierarchies, as one."""
    pids = {group.pid for group in groups if group.pids == 1}
    many = any(group.pids > 1 for group in groups)
    first = groups[0]
    return Churned(
        parent=first.parent,
        pattern=first.pattern,
        maker=first.maker,
        maker_pid=pids.pop() if len(pids) == 1 and not many else None,
        workload=next((group.workload for group in groups if group.workload), None),
        made=max(group.made for group in groups),
        removed=max(group.removed for group in groups),
        released=max(group.released for group in groups),
        attached=max(group.attached for group in groups),
        unreleased=max(group.unreleased for group in groups),
    )
