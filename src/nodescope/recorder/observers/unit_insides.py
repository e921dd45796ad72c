"""Loops that hide inside running units: ends of their children, listened for now and then.

systemd tells of a unit's own process, not of what that process starts. The kernel's
accounting tells of every end on the node, with its exit code and its parent; to hear
it all the time would cost by what the node runs. So ten seconds of about every two
minutes are listened to, and what was heard is judged together for some twenty minutes: a
child that fails twice a minute is likely found, too, only later. The pauses differ in
length, or a loop with their period would never be heard. One build or one request that
goes wrong many times at once is no loop: the same child must fail under the same parent
in two listenings; where one heard enough for a loop, the next comes soon.
"""

from __future__ import annotations

import random
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from nodescope.ingest.observation import Observation
from nodescope.judgement.loop_rules import is_often
from nodescope.judgement.unit_insides import FOR_OTHERS, ChildLoop, find_child_loop, is_failure
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.records.details import read_details
from nodescope.records.event import Event
from nodescope.records.event_details import UnitChildDetails
from nodescope.sources.places import Places
from nodescope.sources.processes.exits import TaskExit, TaskExits
from nodescope.sources.systemd.unit_processes import (
    Insides,
    Process,
    Service,
    UnitInside,
    read_children,
    read_process,
    read_service,
)

_LISTEN_NS = 10 * SECOND_NS
_PAUSE_S = (80.0, 140.0)
_SOON_S = 14.0  # until what was heard once is listened for again
_KEPT = 10  # listenings that are judged together
_MAX_ENDS = 4096  # of one listening


class Listening(Protocol):
    """Who tells of ends of processes."""

    def take(self) -> list[TaskExit]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _Heard:
    """One listening: children that failed, by the parent that outlived them."""

    began_us: int  # since boot
    watched_us: int = 0
    ends: dict[Process, list[TaskExit]] = field(default_factory=dict)
    services: dict[Process, Service] = field(default_factory=dict)
    parents: dict[int, Process | None] = field(default_factory=dict)  # None: does not count
    kept: int = 0

    def add(self, each: TaskExit, proc: Path) -> None:
        """Keep a failure, if its parent is a service's and older than this listening."""
        if not is_failure(each) or self.kept >= _MAX_ENDS:
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
        service = read_service(proc, pid)
        if service is None:
            return None
        self.services[parent] = service
        return parent


def make(setting: Setting) -> UnitInsides:
    """The observer of what goes on inside this node's units."""
    return UnitInsides(setting.places)


def _pause() -> float:
    return random.uniform(*_PAUSE_S)


class UnitInsides:
    """Listens, rests, and tells of each loop once as it is found, and then that it goes on."""

    interval_ns = 2 * SECOND_NS
    patient = False  # only the kernel is asked

    def __init__(
        self,
        places: Places,
        listen: Callable[[], Listening] = TaskExits,
        pause: Callable[[], float] = _pause,
    ) -> None:
        self._proc = places.proc
        self._listen = listen
        self._pause = pause
        self._exits: Listening | None = None
        self._due_ns = self._until_ns = 0
        self._heard: deque[_Heard] = deque(maxlen=_KEPT)
        self._told: dict[Service, int] = {}  # listenings since it last failed

    def begin_segment(self) -> None:
        """Nothing is said by segment."""

    def observe(self, now_ns: int) -> Observation:
        """Return the loops found, at the end of each period of listening."""
        if self._exits is None:
            if now_ns >= self._due_ns:
                self._exits = self._listen()
                self._until_ns = now_ns + _LISTEN_NS
                self._heard.append(_Heard(_since_boot_us()))
            return Observation()
        heard = self._heard[-1]
        for each in self._exits.take():
            heard.add(each, self._proc)
        if now_ns < self._until_ns:
            return Observation()
        heard.watched_us = _since_boot_us() - heard.began_us
        self.close()
        said = self._judge(now_ns)
        pause_s = _SOON_S if self._is_suspicious() else self._pause()
        self._due_ns = now_ns + int(pause_s * SECOND_NS)
        return said

    def close(self) -> None:
        """Listen no more."""
        if self._exits is not None:
            self._exits.close()
            self._exits = None

    def _is_suspicious(self) -> bool:
        """Return whether the last period alone shows a loop that was not reported yet."""
        last = self._heard[-1]
        return any(
            last.services[parent] not in self._told
            and is_often(max(Counter(each.comm for each in ends).values()))
            for parent, ends in last.ends.items()
        )

    def _judge(self, now_ns: int) -> Observation:
        said = Observation()
        insides, services = self._put_together()
        last = {
            (service, each.comm)
            for parent, service in self._heard[-1].services.items()
            for each in self._heard[-1].ends.get(parent, ())
        }
        self._told = {each: age + 1 for each, age in self._told.items() if age < _KEPT}
        for key, inside in insides.of.items():
            service = services[key]
            found = None if service.name in FOR_OTHERS else find_child_loop(inside, insides)
            if found is None or (service, found.name) not in last:
                continue  # not known to go on
            said.events.append(self._event(now_ns, service, found))
            self._told[service] = 0
        return said

    def _event(self, now_ns: int, service: Service, found: ChildLoop) -> Event:
        first = service not in self._told
        kind = "unit_hidden_loop" if first else "unit_child_failing"
        details = read_details(UnitChildDetails, {**found.evidence, "cgroup": service.cgroup})
        return Event(now_ns, kind, service.name, found.describe(), details=details)

    def _put_together(self) -> tuple[Insides, dict[str, Service]]:
        """Combine recent failures below parents that live on, by cgroup."""
        insides = Insides(
            watched_us=sum(each.watched_us for each in self._heard),
            until_us=_since_boot_us(),
            sees_exits=True,
        )
        services: dict[str, Service] = {}
        for parent in {parent for heard in self._heard for parent in heard.ends}:
            ends = self._repeated(parent)
            if not ends or not self._lives(parent):
                continue
            service = next(h.services[parent] for h in self._heard if parent in h.services)
            services[service.cgroup] = service
            inside = insides.of.setdefault(service.cgroup, UnitInside(service.name))
            inside.processes[parent.pid] = parent
            inside.exits += ends
            for child in read_children(self._proc, parent.pid):
                # what runs there now gives the child's whole command, if it is there
                inside.processes.setdefault(child.pid, child)
        return insides, services

    def _repeated(self, parent: Process) -> list[TaskExit]:
        """The ends of those of its children that failed in more than one listening."""
        each_time = [Counter(e.comm for e in heard.ends.get(parent, ())) for heard in self._heard]
        total = sum(each_time, Counter[str]())
        repeated = {
            comm
            for comm, times in total.items()
            if is_often(times, looks=sum(comm in heard for heard in each_time))
        }
        return [
            e for heard in self._heard for e in heard.ends.get(parent, ()) if e.comm in repeated
        ]

    def _lives(self, parent: Process) -> bool:
        now = read_process(self._proc, parent.pid)
        return now is not None and now.started_us == parent.started_us


def _since_boot_us() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
