"""The loop of the synthetic story, told as the recorder would have told it.

As the agent's supervisor is written (ecs-init: `StartSupervised`), `ecs.service` asks
docker over its socket to remove the old container and to make a new one of the same name.
So the unit runs on, has no child that fails, and was never restarted; each container is a
new id; runc makes the cgroups. What ties the two are the unit's own lines in the journal:
they name the id that is removed, and say that the agent exited. An exit code of 5 would end
the supervisor for good: the agent of the story exits with 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from nodescope.ingest.container_events import (
    container_row,
    ended_event,
    loop_event,
    started_event,
)
from nodescope.ingest.unit_events import unit_lines_event
from nodescope.judgement.churn_ledger import ChurnLedger
from nodescope.judgement.container_loops import find_loops
from nodescope.quantities import SECOND_NS
from nodescope.records.event import Event
from nodescope.records.node_tables import CgroupChurnRow, ContainerRow
from nodescope.sources.cgroups.churn import ChurnEvent, Kind
from nodescope.sources.containers.container import Container, ContainerHappening, HappeningKind

RAN_S = 3
EXIT_STATUS = 1
PARENT = "/ecs"
NAME = "ecs-agent"
IMAGE = "amazon/amazon-ecs-agent:latest"
TOLD_S = 10  # how often the recorder writes of cgroups
LOOKED_S = 120  # how often it says that a unit goes on logging of ends
REMEMBERED_S = 1200  # what it counts then
# One container is a cgroup in each hierarchy of v1; only in this one they stay.
HELD, FREED = "memory", "pids"


class SyntheticLoop:
    """Starts every `period_s`; `at` gives the time of a second of the recording."""

    def __init__(self, period_s: int, before: int, at: Callable[[float], int], offset: int) -> None:
        """`before` were made before the recording."""
        self._period_s = period_s
        self._before = before
        self._at = at
        self._offset = offset  # to wall time
        self._ledger = ChurnLedger()

    def starts(self, start: int, stop: int) -> range:
        """The seconds at which it is started."""
        first = -(-start // self._period_s) * self._period_s
        return range(first, stop, self._period_s)

    def _number(self, second: int) -> int:
        return self._before + second // self._period_s

    def _id(self, second: int) -> str:
        return hashlib.sha256(f"{NAME} {self._number(second)}".encode()).hexdigest()

    # -- containers ----------------------------------------------------------

    def containers(self, start: int, stop: int) -> list[ContainerRow]:
        """Rows of `containers`: each runs, has ended, and is removed as the next one is made."""
        rows = []
        for second in self.starts(start, stop):
            ended = self._ended(second)
            gone = replace(self._ended(second - self._period_s), state="removed")
            at = self._at(second)
            rows += [
                container_row(gone, at),
                container_row(self._running(second), at),
                container_row(ended, self._at(second + RAN_S)),
            ]
        return rows

    def _running(self, second: int) -> Container:
        identifier = self._id(second)
        return Container(
            "docker", identifier, NAME, IMAGE, state="running", pid=5000, restarts=0,
            cgroup=f"{PARENT}/{identifier}", cgroup_parent=PARENT,
        )  # fmt: skip

    def _ended(self, second: int) -> Container:
        return replace(self._running(second), state="exited", pid=None, exit_status=EXIT_STATUS)

    def events(self, start: int, stop: int) -> list[Event]:
        """Starts and ends of containers, and what the unit logs of them."""
        events = []
        for second in self.starts(start, stop):
            replaces = self._id(second - self._period_s)
            at, ended_at = self._at(second), self._at(second + RAN_S)
            events += [
                started_event(self._running(second), at, replaces),
                ended_event(self._ended(second), RAN_S * SECOND_NS, ended_at),
            ]
        if start <= 2 * self._period_s < stop:
            events.append(self._looped(2 * self._period_s))
        events += [self._logged(s) for s in range(start, stop) if s % LOOKED_S == LOOKED_S - 20]
        return events

    def _looped(self, second: int) -> Event:
        """Return what the recorder reports once: that it loops, when its third start was seen."""
        happened = []
        for start in range(0, second + 1, self._period_s):
            end = self._at(start + RAN_S)
            happened += [
                ContainerHappening(HappeningKind.STARTED, self._at(start), self._running(start)),
                ContainerHappening(
                    HappeningKind.EXITED, end, self._ended(start), RAN_S * SECOND_NS
                ),
            ]
        (loop,) = find_loops(happened[:-1], self._at(second))
        return loop_event(loop, self._at(second))

    def _logged(self, second: int) -> Event:
        """Return what the recorder reports of the unit's lines: the latest of each kind."""
        since = max(0, second - REMEMBERED_S)
        ends = [each + RAN_S for each in self.starts(since - RAN_S, second - RAN_S)]
        latest = ends[-1] - RAN_S
        last = self._line(ends[-1], f"Agent exited with code {EXIT_STATUS}")
        lines = [
            self._line(latest, f"Container name: /{NAME}"),
            self._line(latest, "Removing existing agent container ID: "
                       f"{self._id(latest - self._period_s)}"),
            self._line(latest, "Starting Amazon Elastic Container Service Agent"),
            last,
            self._line(ends[-1], "ECS Agent failed to start, retrying in 15.6s", "warn"),
        ]  # fmt: skip
        ends_us = [each * 1_000_000 for each in ends]
        return unit_lines_event(self._at(second), "ecs.service", ends_us, last, lines)

    def _line(self, second: int, text: str, level: str = "info") -> str:
        wall = datetime.fromtimestamp((self._at(second) + self._offset) / SECOND_NS, UTC)
        return f'level={level} time={wall:%Y-%m-%dT%H:%M:%SZ} msg="{text}"'

    # -- cgroups -------------------------------------------------------------

    def churn(self, start: int, stop: int) -> list[CgroupChurnRow]:
        """Rows of `cgroup_churn`, by the recorder's own ledger; whole once in a segment."""
        rows = []
        for second in range(start, stop, TOLD_S):
            self._ledger.take(self._churned(second - TOLD_S, second))
            at = self._at(second)
            told = self._ledger.tell(at, whole=second == start)
            rows += [each.as_row(at, "tracepoints") for each in told]
        return rows

    def _churned(self, start: int, stop: int) -> Iterator[ChurnEvent]:
        """Return the cgroup events of some seconds, in order of time."""
        happened: list[tuple[float, Kind, str, int]] = []
        for second in self.starts(max(0, start - RAN_S), stop):
            happened += [(second, kind, each, second) for kind in ("made", "attached")
                         for each in (HELD, FREED)]  # fmt: skip
            ended = second + RAN_S
            happened += [(ended, "removed", HELD, second), (ended, "removed", FREED, second),
                         (ended + 0.035, "released", FREED, second)]  # fmt: skip
        for when, kind, hierarchy, second in sorted(happened, key=lambda each: each[0]):
            if start <= when < stop:
                number = self._number(second)
                comm = "runc:[2:INIT]" if kind == "attached" else "runc"
                pid = 20_000 + number % 10_000  # a new process each time
                path = f"{PARENT}/{self._id(second)}"
                yield ChurnEvent(self._at(when), kind, path, hierarchy, number, pid, comm)
