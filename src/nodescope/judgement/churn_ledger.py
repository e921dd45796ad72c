"""Adds up events of cgroups that come and go: by parent, pattern of name, maker and its cgroup.

On v1 one container is a cgroup in each of ten hierarchies. They are counted
apart and reported as one: of each figure the largest. A cgroup that was removed is
remembered until the kernel releases it; after 15 s it counts as unreleased,
which normally never happens (a release takes some ten milliseconds). What is
remembered is bounded, whatever a node does: beyond the bounds parents and
patterns are reported more coarsely, and single cgroups become numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nodescope.judgement.cgroup_churn import GRACE_NS, Churn
from nodescope.sources.cgroups.churn import ChurnEvent
from nodescope.sources.cgroups.hierarchies import UNIFIED
from nodescope.sources.cgroups.name_pattern import name_pattern, split_path

_MAX_LIVE = 20_000
_MAX_REMOVED = 20_000
_MAX_GROUPS = 2_000  # beyond them, parents are told by pattern
_MAX_PATTERNS = 64  # under one parent; beyond them all names are `*`
_MAX_COARSE = 4_000  # beyond them, everything is told of the root
_IDLE_TELLINGS = 30
_MAX_PIDS = 100  # of one maker, named
_MAX_RAN = 16  # different names of what was attached
_MAX_MAKER_CGROUPS = 500  # of all makers; beyond them, a new one is not told


@dataclass(slots=True)
class _Group:
    """Cgroups of one hierarchy, parent, pattern, maker and cgroup of the maker."""

    parent: str
    pattern: str
    maker: str | None
    maker_cgroup: str | None
    example: str
    pids: set[int] = field(default_factory=set)  # since the last telling
    workload: str | None = None
    ran: Counter[str] = field(default_factory=Counter)  # since the last telling
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
        if pid is not None and len(self.pids) < _MAX_PIDS:
            self.pids.add(pid)

    def attach(self, comm: str | None) -> None:
        self.attached += 1
        self.workload = comm or self.workload
        if comm and (comm in self.ran or len(self.ran) < _MAX_RAN):
            self.ran[comm] += 1


# hierarchy, parent, pattern, maker, the maker's cgroup
_Key = tuple[str, str, str, str | None, str | None]
_Id = tuple[str, int]


class ChurnLedger:
    """Takes events in the order of time; tells what they add up to."""

    def __init__(self, *, releases: bool = True, grace_ns: int = GRACE_NS) -> None:
        """Without `releases`, none is ever heard of: what is unreleased is not known."""
        self._releases = releases
        self._grace_ns = grace_ns
        self._nameless = 0
        self._groups: dict[_Key, _Group] = {}
        self._patterns: dict[str, set[str]] = {}
        self._maker_cgroups: set[str] = set()
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
                    group.attach(event.comm)

    def tell(self, now_ns: int, *, whole: bool = False) -> list[Churn]:
        """Return what changed since the last time; `whole`: also what is unreleased and did not."""
        self._ripen(now_ns)
        told: dict[tuple[str, str, str | None, str | None], list[_Group]] = {}
        for group in self._groups.values():
            if group.moved or group.unreleased != group.told or (whole and group.unreleased):
                key = (group.parent, group.pattern, group.maker, group.maker_cgroup)
                told.setdefault(key, []).append(group)
        rows = [_merge(groups, releases=self._releases) for groups in told.values()]
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
            if removed_ns > now_ns - self._grace_ns:
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
        inside = self._bound(event.maker_cgroup)
        key = (event.hierarchy, parent, pattern, event.comm, inside)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(parent, pattern, event.comm, inside, event.path)
        return group

    def _bound(self, maker_cgroup: str | None) -> str | None:
        """Return a maker's cgroup, or None where there are too many to tell them apart."""
        if maker_cgroup is None or maker_cgroup in self._maker_cgroups:
            return maker_cgroup
        if len(self._maker_cgroups) >= _MAX_MAKER_CGROUPS:
            return None
        self._maker_cgroups.add(maker_cgroup)
        return maker_cgroup

    def _settle(self) -> None:
        """Begin the next interval; forget groups in which nothing is left or happens."""
        for key, group in list(self._groups.items()):
            group.idle = 0 if group.moved else group.idle + 1
            group.made = group.removed = group.released = group.attached = 0
            group.pids.clear()
            group.ran.clear()
            group.told = group.unreleased
            if group.idle > _IDLE_TELLINGS and not (group.members or group.unreleased):
                del self._groups[key]
        if len(self._patterns) > 2 * len(self._groups) + 16:
            self._patterns = {}
            for group in self._groups.values():
                self._patterns.setdefault(group.parent, set()).add(group.pattern)
        used = {group.maker_cgroup for group in self._groups.values()}
        self._maker_cgroups = {each for each in used if each is not None}


def _merge(groups: list[_Group], *, releases: bool) -> Churn:
    """Return the same cgroups in several hierarchies as one."""
    pids = frozenset(pid for group in groups for pid in group.pids)
    most = max(groups, key=lambda group: group.attached)
    return Churn(
        parent=most.parent,
        pattern=most.pattern,
        maker=most.maker,
        made=max(group.made for group in groups),
        removed=max(group.removed for group in groups),
        released=max(group.released for group in groups),
        attached=most.attached,
        unreleased=max(group.unreleased for group in groups) if releases else None,
        maker_pid=next(iter(pids)) if len(pids) == 1 else None,
        pids=pids,
        workload=next((group.workload for group in groups if group.workload), None),
        ran=tuple(most.ran.most_common()),
        example=most.example,
        maker_cgroup=most.maker_cgroup,
    )


def choose_memory(events: Iterable[ChurnEvent], *, v2: bool) -> Iterator[ChurnEvent]:
    """Pass on the events of the hierarchy that the memory controller is in."""
    wanted = UNIFIED if v2 else "memory"
    return (event for event in events if wanted in event.hierarchy.split(","))
