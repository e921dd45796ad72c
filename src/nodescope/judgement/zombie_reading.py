"""How many zombies there are at a moment: one reading, of a live node or of a recording.

Zombies are memory cgroups that were removed and are still tracked by the kernel. Counts and
parents are read at different times, so each carries its own; what nobody counted is
`NotObserved`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.sources.memory_cgroups.parents import Parent
from nodescope.sources.memory_cgroups.walk import Walk

if TYPE_CHECKING:  # a live look needs neither numpy nor Arrow
    from collections.abc import Iterable

    from nodescope.recording.coverage import NotObserved
    from nodescope.recording.recording import Recording
    from nodescope.recording.window import Window
    from nodescope.records.node_tables import DyingParentRow, MemoryCgroupsRow
    from nodescope.sources.memory_cgroups.survey import Look

WALK_NS = HOUR_NS  # how long before a moment a walk still tells what one costs


@dataclass(frozen=True, slots=True)
class ZombieReading:
    """Memory cgroups as counted at one time; None is what was not known then."""

    version: str  # of the memory controller's hierarchy: `v1`, `v2` or `hybrid`
    tracked: int | None
    visible: int | None
    dying: int | None  # counted; None where only a part of the hierarchy is seen
    read_ns: int | None = None  # wall time; None: just now
    parents: tuple[Parent, ...] = ()  # those with most first, each with its own time
    walk: Walk | None = None
    possible_cpus: int | None = None
    memory_bytes: int | None = None
    uptime_ns: int | None = None
    mount: str | None = None
    whole: bool | None = None  # whether all of the hierarchy is mounted there

    @property
    def parents_read_ns(self) -> int | None:
        """When the parents were last recorded; None: just now, or never."""
        times = (each.read_ns for each in self.parents)
        return max((time_ns for time_ns in times if time_ns is not None), default=None)

    @property
    def likely_dying(self) -> int | None:
        """How many are dying: counted, or at most what is tracked and not visible."""
        if self.dying is not None or self.tracked is None:
            return self.dying
        return self.tracked - (self.visible or 0)


def of_look(look: Look) -> ZombieReading:
    """Return the reading of a look at the live node."""
    count, hierarchy = look.count, look.hierarchy
    return ZombieReading(
        count.version, count.tracked, count.visible, count.dying, None, tuple(look.parents),
        look.walk, look.possible_cpus, look.memory_bytes, look.uptime_ns,
        hierarchy.mount, hierarchy.whole,
    )  # fmt: skip


def read_zombies(recording: Recording, at_ns: int) -> ZombieReading | NotObserved:
    """Return the last reading up to a moment."""
    from nodescope.recording.coverage import NotObserved
    from nodescope.recording.window import Window
    from nodescope.records.node_tables import DyingParentRow, MemoryCgroupsRow

    counted = recording.state(MemoryCgroupsRow, at_ns)
    if not counted:
        return NotObserved("memory cgroups", Window(at_ns, at_ns + 1))
    last = max(counted, key=lambda row: row.time_ns)
    cpus, memory = recording.node.get("cpus"), recording.node.get("memory_bytes")
    return ZombieReading(
        last.version,
        last.tracked,
        last.visible,
        last.dying,
        last.time_ns,
        find_parents(recording.state(DyingParentRow, at_ns), exact=last.version == "v2"),
        _walk_of(last),
        cpus if isinstance(cpus, int) else None,
        memory if isinstance(memory, int) else None,
        _uptime_ns(recording, at_ns),
    )


def read_walk(recording: Recording, at_ns: int) -> Walk | None:
    """Return the last walk that was timed up to a moment: not every count comes with one."""
    from nodescope.recording.window import Window
    from nodescope.records.node_tables import MemoryCgroupsRow

    rows = recording.rows(MemoryCgroupsRow, Window(at_ns - WALK_NS, at_ns + 1))
    walks = [row for row in rows if row.walk_ns is not None]
    last = max(walks, key=lambda row: row.time_ns, default=None)
    return None if last is None else _walk_of(last)


def read_dying(recording: Recording, window: Window) -> list[tuple[int, int]]:
    """Return when zombies were counted in a window, and how many there were."""
    from nodescope.records.node_tables import MemoryCgroupsRow

    rows = recording.rows(MemoryCgroupsRow, window)
    return sorted((row.time_ns, row.dying) for row in rows if row.dying is not None)


def find_parents(rows: Iterable[DyingParentRow], *, exact: bool) -> tuple[Parent, ...]:
    """Return parents with zombies, those with most first; v1 only estimates how many each has."""
    newest: dict[str, DyingParentRow] = {}
    held: dict[str, dict[str, int]] = {}
    for row in rows:
        if row.path not in newest or row.time_ns >= newest[row.path].time_ns:
            newest[row.path] = row
        kinds = held.setdefault(row.path, {})
        if row.kind and row.held_bytes:
            kinds[row.kind] = row.held_bytes
    parents = [
        Parent(
            path, row.dying, exact, held[path], evidence="counted" if exact else None,
            read_ns=row.time_ns,
        )
        for path, row in newest.items()
        if row.dying or held[path]
    ]  # fmt: skip
    return tuple(
        sorted(parents, key=lambda each: (-(each.dying or 0), -each.held_bytes, each.path))
    )


def _walk_of(row: MemoryCgroupsRow) -> Walk | None:
    return None if row.walk_ns is None else Walk(row.walk_file or "", row.walk_ns)


def _uptime_ns(recording: Recording, at_ns: int) -> int | None:
    """Return how long the node had been up: the monotonic clock starts with it."""
    from nodescope.recording.window import Window

    for part in recording.overlapping(Window(at_ns - SECOND_NS, at_ns)):
        start = part.description.start
        return start.monotonic_ns + at_ns - start.wall_ns
    return None
