"""How many memory cgroups there are, whose dying ones are, and what walking them costs.

Counting is cheap and done every ten seconds; on v1 it looks at every directory, so
with thousands of them it is done less often: at most half a thousandth of the time
goes into it. Parents are read every minute if the number of dying ones moved, else every
ten; reading them means reading the statistics of every cgroup, and has the same
limit: a segment that begins before they are due starts with what was read last. A
threshold passed is an event, once until the number fell again. What was slow and what
was told is remembered by the archive: a recorder that starts again goes on from there.
"""

from __future__ import annotations

import time

from nodescope.errors import SourceAbsent, SourceError
from nodescope.ingest.observation import Observation
from nodescope.judgement.zombies import Level, ZombieVerdict, judge
from nodescope.quantities import SECOND_NS
from nodescope.recorder.already_recorded import read_told_walk, read_told_zombies
from nodescope.recorder.observer import Setting
from nodescope.records.event import Event
from nodescope.records.event_details import ZombieDetails
from nodescope.records.node_tables import DyingParentRow, MemoryCgroupsRow
from nodescope.sources.kernel_files import read_text
from nodescope.sources.memory_cgroups.counts import Count, Counting
from nodescope.sources.memory_cgroups.facts import read_memory_bytes, read_possible_cpus
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy, find_memory_hierarchy
from nodescope.sources.memory_cgroups.residual import read_parents
from nodescope.sources.memory_cgroups.walk import (
    SLOW_INTERVAL_NS,
    SLOW_NS,
    Walk,
    WalkPace,
    probe_walk,
)

_COUNT_NS = 10 * SECOND_NS
_PARENTS_NS = 60 * SECOND_NS
_STILL_NS = 600 * SECOND_NS  # parents, while nothing moves
_SHARE = 2000  # of the time, what each part may take: one in so many
_FEW = 20  # dying ones more or less are not worth reading the parents again
_MOST_PARENTS = 50  # told; the rest hold little
_FALLEN = 0.9  # of a threshold: below it, it may be passed again
_LEVELS: tuple[Level, ...] = ("healthy", "warn", "critical")
_Told = dict[str, tuple[int | None, dict[str, int]]]


class MemoryCgroupsObserver:
    """Counts, attributes, probes, and says when it gets bad."""

    interval_ns = _COUNT_NS
    patient = True  # a walk may take seconds on an old kernel

    def __init__(self, setting: Setting) -> None:
        self._places = setting.places
        self._archive = setting.archive
        self._boot_id = ""
        self._began = False
        self._hierarchy: MemoryHierarchy | None = None
        self._counting: Counting | None = None
        self._walk_pace = WalkPace()
        self._walk: Walk | None = None
        self._whole = True
        self._count_due_ns = 0
        self._parents_due_ns = 0
        self._parents_dying: int | None = None
        self._told: _Told = {}  # as read last, by path
        self._level: Level | None = None  # None: not known what was told before

    def begin_segment(self) -> None:
        self._whole = True

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        if not self._whole and now_ns < self._count_due_ns:
            return said
        hierarchy, counting = self._find()
        cpu = time.thread_time_ns()
        try:
            count = counting.read()
        except SourceAbsent:
            self._hierarchy = None  # mounted elsewhere by now, perhaps
            raise
        self._count_due_ns = now_ns + _SHARE * (time.thread_time_ns() - cpu)
        if not self._began:
            self._begin(now_ns)
        walk = self._probe(hierarchy, now_ns)
        row = MemoryCgroupsRow(
            time_ns=now_ns,
            version=count.version,
            tracked=count.tracked,
            visible=count.visible,
            dying=count.dying,
            walk_ns=walk.took_ns if walk else None,
            walk_file=walk.file if walk else None,
        )
        said.add(row)
        self._tell_parents(hierarchy, count, now_ns, said)
        self._tell_crossing(count, now_ns, said)
        self._whole = False
        return said

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, now_ns: int) -> None:
        """Go on where the recorder before left off: what was slow then is not done again yet."""
        self._began = True
        self._boot_id = read_text(self._places.proc / "sys/kernel/random/boot_id") or ""
        told = read_told_walk(self._archive, self._boot_id, now_ns - SLOW_INTERVAL_NS)
        if told is None:
            return
        self._walk = Walk(told.file, told.took_ns)
        self._walk_pace.took(told.time_ns, told.took_ns)
        if told.took_ns > SLOW_NS:  # reading the parents walks, too, where `memory.stat` does
            self._parents_due_ns = told.time_ns + SLOW_INTERVAL_NS

    def _find(self) -> tuple[MemoryHierarchy, Counting]:
        if self._hierarchy is None or self._counting is None:
            self._hierarchy = find_memory_hierarchy(self._places)
            self._counting = Counting(self._hierarchy)
        return self._hierarchy, self._counting

    def _probe(self, hierarchy: MemoryHierarchy, now_ns: int) -> Walk | None:
        """The walk probe, if it may run now."""
        if not self._walk_pace.is_due(now_ns):
            return None
        try:
            self._walk = probe_walk(hierarchy)
        except SourceError:
            self._walk_pace.took(now_ns, 0)  # not here; asked again with the next
            return None
        self._walk_pace.took(now_ns, self._walk.took_ns)
        return self._walk

    def _tell_parents(
        self, hierarchy: MemoryHierarchy, count: Count, now_ns: int, said: Observation
    ) -> None:
        if not self._parents_are_due(count, now_ns):
            if self._whole:
                _tell(said, now_ns, self._told)
            return
        started = time.thread_time_ns()
        parents = read_parents(hierarchy, count.dying)[:_MOST_PARENTS]
        took = time.thread_time_ns() - started
        # Before v4.19 each of these reads walks, and holds its core while it does.
        least = SLOW_INTERVAL_NS if took > SLOW_NS else _PARENTS_NS
        self._parents_due_ns = now_ns + max(least, _SHARE * took)
        self._parents_dying = count.dying
        now: _Told = {each.path: (each.dying, dict(each.held)) for each in parents}
        changed: _Told = {}
        for path, (_, held_before) in self._told.items():
            dying, held = now.get(path, (0, {}))
            # What is no longer held is told once as nothing.
            changed[path] = dying, {**dict.fromkeys(held_before, 0), **held}
        for path, found in now.items():
            changed.setdefault(path, found)
        if not self._whole:
            changed = {path: found for path, found in changed.items()
                       if found != self._told.get(path)}  # fmt: skip
        _tell(said, now_ns, changed)
        self._told = now

    def _parents_are_due(self, count: Count, now_ns: int) -> bool:
        if now_ns < self._parents_due_ns:
            return False
        before, now = self._parents_dying, count.dying
        moved = before is None or now is None or abs(now - before) > _FEW
        return moved or now_ns >= self._parents_due_ns + _STILL_NS - _PARENTS_NS

    def _tell_crossing(self, count: Count, now_ns: int, said: Observation) -> None:
        verdict = self._judge(count)
        if verdict.level == "unknown":
            return
        level = verdict.level
        if self._level is None:
            self._level = "healthy" if level == "healthy" else self._told_level(verdict)
        if _LEVELS.index(level) > _LEVELS.index(self._level):
            self._level = level
            said.events.append(_crossing(level, verdict, count, now_ns))
        elif _LEVELS.index(level) < _LEVELS.index(self._level) and self._has_fallen(count, verdict):
            self._level = level

    def _told_level(self, verdict: ZombieVerdict) -> Level:
        """Return the level that the previous recorder reported last, if it still holds."""
        told = read_told_zombies(self._archive, self._boot_id)
        if told is None:
            return "healthy"
        level: Level = "critical" if told.kind == "zombies_critical" else "warn"
        by_number = told.dying >= told.threshold  # else by what they cost: it cannot be seen
        if not by_number or told.least >= _FALLEN * told.threshold:
            return level
        return "warn" if told.least >= _FALLEN * verdict.warn_at else "healthy"

    def _has_fallen(self, count: Count, verdict: ZombieVerdict) -> bool:
        """Clearly below the threshold that was passed, so that it is not passed again at once."""
        passed = verdict.critical_at if self._level == "critical" else verdict.warn_at
        return (count.dying or 0) < _FALLEN * passed

    def _judge(self, count: Count) -> ZombieVerdict:
        walk_ns = self._walk.took_ns if self._walk else None
        return judge(
            count.dying,
            count.tracked,
            walk_ns,
            read_possible_cpus(self._places),
            read_memory_bytes(self._places),
        )


def _tell(said: Observation, now_ns: int, parents: _Told) -> None:
    for path, (dying, held) in parents.items():
        counted = DyingParentRow(time_ns=now_ns, path=path, dying=dying)
        for kind, amount in held.items():
            said.add(counted.replace(kind=kind, held_bytes=amount))
        if not held:
            said.add(counted)


def _crossing(level: Level, verdict: ZombieVerdict, count: Count, now_ns: int) -> Event:
    at = verdict.critical_at if level == "critical" else verdict.warn_at
    message = f"{'; '.join(verdict.reasons)} ({level} from {at:,})"
    details = ZombieDetails(
        dying=count.dying,
        tracked=count.tracked,
        visible=count.visible,
        threshold=at,
    )
    return Event(now_ns, f"zombies_{level}", "memory cgroups", message, details=details)


def make(setting: Setting) -> MemoryCgroupsObserver:
    """Make the observer as the recorder runs it."""
    return MemoryCgroupsObserver(setting)
