"""Loops that hide inside running units: ends of their children, listened for now and then.

systemd tells of a unit's own process, not of what that process starts. The kernel's
accounting tells of every end on the node, with its exit code and its parent; to hear
it all the time would cost by what the node runs. So ten seconds of every two minutes
are listened to, and what was heard is judged together for twenty minutes: a child that
fails twice a minute is found, too, only later.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nodescope.analysis.audit_inside import audit_inside
from nodescope.recorder.observation import SECOND_NS, Event, Observation, Setting
from nodescope.sources.places import Places
from nodescope.sources.task_exits import TaskExit, TaskExits
from nodescope.sources.unit_insides import (
    Inside,
    Insides,
    Process,
    read_children,
    read_process,
    read_service,
)

_LISTEN_NS = 10 * SECOND_NS
_EVERY_NS = 120 * SECOND_NS
_KEPT = 10  # times of listening that are judged together
_TIMES = 3  # over all of them; an audit, which looks once, is content with less
_MAX_ENDS = 4096  # of one time of listening


class Listening(Protocol):
    """Who tells of ends of processes."""

    def take(self) -> list[TaskExit]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _Heard:
    """One time of listening: children that failed, by the parent that outlived them."""

    began_us: int  # since boot
    watched_us: int = 0
    ends: dict[Process, list[TaskExit]] = field(default_factory=dict)
    parents: dict[int, Process | None] = field(default_factory=dict)  # None: does not count
    units: dict[Process, str] = field(default_factory=dict)
    kept: int = 0

    def add(self, each: TaskExit, proc: Path) -> None:
        """Keep an end with an error, if its parent is a service's and older than our listening."""
        if not each.status or self.kept >= _MAX_ENDS:
            return
        if each.parent not in self.parents:
            self.parents[each.parent] = self._find_parent(each.parent, proc)
        parent = self.parents[each.parent]
        if parent is not None:
            self.ends.setdefault(parent, []).append(each)
            self.kept += 1

    def _find_parent(self, pid: int, proc: Path) -> Process | None:
        parent = read_process(proc, pid)
        if parent is None or parent.started_us > self.began_us:
            return None
        unit = read_service(proc, pid)
        if unit is None:
            return None
        self.units[parent] = unit
        return parent


def make(setting: Setting) -> UnitInsides:
    """The observer of what goes on inside this node's units."""
    return UnitInsides(setting.places)


class UnitInsides:
    """Listens, rests, and tells of each loop once as it is found, and then that it goes on."""

    interval_ns = 2 * SECOND_NS
    patient = False  # only the kernel is asked

    def __init__(self, places: Places, listen: Callable[[], Listening] = TaskExits) -> None:
        self._proc = places.proc
        self._listen = listen
        self._exits: Listening | None = None
        self._due_ns = self._until_ns = 0
        self._heard: deque[_Heard] = deque(maxlen=_KEPT)
        self._told: set[tuple[str, str]] = set()

    def begin_segment(self) -> None:
        """Nothing is said by segment."""

    def observe(self, now_ns: int) -> Observation:
        """What was found, at the end of each time of listening."""
        if self._exits is None:
            if now_ns >= self._due_ns:
                self._exits = self._listen()
                self._due_ns, self._until_ns = now_ns + _EVERY_NS, now_ns + _LISTEN_NS
                self._heard.append(_Heard(_since_boot_us()))
            return Observation()
        heard = self._heard[-1]
        for each in self._exits.take():
            heard.add(each, self._proc)
        if now_ns < self._until_ns:
            return Observation()
        heard.watched_us = _since_boot_us() - heard.began_us
        self.close()
        return self._judge(now_ns)

    def close(self) -> None:
        """Listen no more."""
        if self._exits is not None:
            self._exits.close()
            self._exits = None

    def _judge(self, now_ns: int) -> Observation:
        insides = self._put_together()
        just_now = set(self._heard[-1].units.values())
        said = Observation()
        looping = set()
        for unit, inside in insides.of.items():
            found = audit_inside(inside, insides, (), insides.until_us, unit)
            if found is None or found.evidence["failed_ends"] < _TIMES:
                continue
            key = unit, str(found.evidence["child"])
            looping.add(key)
            if unit not in just_now:
                continue  # not known to go on
            first = key not in self._told
            kind = "unit_hidden_loop" if first else "unit_child_failing"
            said.events.append(
                Event(now_ns, kind, unit, found.reason, details=found.evidence, loud=first)
            )
        self._told = looping
        return said

    def _put_together(self) -> Insides:
        """All that was heard lately of parents that live on, by unit."""
        insides = Insides(
            watched_us=sum(each.watched_us for each in self._heard),
            until_us=_since_boot_us(),
            sees_exits=True,
        )
        parents = {parent for heard in self._heard for parent in heard.ends}
        alive = {each for each in parents if self._lives(each)}
        for heard in self._heard:
            for parent in alive & heard.ends.keys():
                unit = heard.units[parent]
                inside = insides.of.setdefault(unit, Inside(unit))
                inside.processes[parent.pid] = parent
                inside.exits += heard.ends[parent]
        for inside in insides.of.values():
            # what runs there now gives the child's whole command, if it is there
            for pid in list(inside.processes):
                for child in read_children(self._proc, pid):
                    inside.processes.setdefault(child.pid, child)
        return insides

    def _lives(self, parent: Process) -> bool:
        now = read_process(self._proc, parent.pid)
        return now is not None and now.started_us == parent.started_us


def _since_boot_us() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
