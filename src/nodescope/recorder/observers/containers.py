"""Containers: their rows when they change, their starts and ends at their own times, loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from nodescope.clock import Clock, SystemClock, read_pair
from nodescope.ingest.container_events import (
    container_row,
    ended_event,
    loop_event,
    restarted_event,
    started_event,
)
from nodescope.ingest.observation import Observation
from nodescope.judgement.container_loops import LoopWatch
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.records.event import Event
from nodescope.sources.containers.container import Container, ContainerHappening, HappeningKind
from nodescope.sources.containers.runtimes import Runtimes

_MAX_NAMES = 4096

Key = tuple[str, str]


def make(setting: Setting) -> Containers:
    """The observer of this node's containers."""
    return Containers(Runtimes(setting.places), SystemClock())


class Containers:
    """Follows every runtime of the node."""

    interval_ns = 2 * SECOND_NS
    patient = True  # daemons may take their time

    def __init__(self, runtimes: Runtimes, clock: Clock) -> None:
        self._runtimes = runtimes
        self._clock = clock
        self._loops = LoopWatch()
        self._said: dict[Key, Container] = {}
        self._started: set[Key] = set()
        self._ids: dict[str, str] = {}  # the latest id by subject
        self._failing_since: dict[str, int] = {}
        self._asked_ns: int | None = None

    def begin_segment(self) -> None:
        """Say every container again."""
        self._said = {}

    def observe(self, now_ns: int) -> Observation:
        """Return changes and events since the last call."""
        pair = read_pair(self._clock)
        polled = self._runtimes.poll(pair.wall_ns)
        observation = Observation()
        latest: dict[Key, Container] = {}
        for happening in polled.happenings:
            container = happening.container
            key = container.runtime, container.id
            latest[key] = _carried_on(latest.get(key) or self._said.get(key), container)
            time_ns = happening.wall_ns - pair.offset_ns
            self._tell(observation, happening, latest[key], min(time_ns, now_ns))
        self._add_rows(observation, latest, now_ns)
        self._note_failures(observation, polled.failed, now_ns)
        self._asked_ns = now_ns
        return observation

    def close(self) -> None:
        self._runtimes.close()

    # -- rows ------------------------------------------------------------------------

    def _add_rows(
        self, observation: Observation, latest: Mapping[Key, Container], now_ns: int
    ) -> None:
        """Those that changed; and what is gone once more, as it was last seen."""
        present = self._runtimes.containers
        for key, container in present.items():
            said = self._said.get(key)
            if said is not container and said != container:
                observation.add(container_row(container, now_ns))
                if container.started_wall_ns is not None:
                    self._started.add(key)
                    self._ids.setdefault(container.subject, container.id)
        gone = {key: each for key, each in self._said.items() if key not in present}
        gone |= {key: each for key, each in latest.items() if key not in present}
        for key, container in gone.items():
            removed = replace(container, state="removed", pid=None)
            observation.add(container_row(removed, now_ns))
            self._started.discard(key)
        self._said = dict(present)

    # -- events ----------------------------------------------------------------------

    def _tell(
        self,
        observation: Observation,
        happening: ContainerHappening,
        container: Container,
        time_ns: int,
    ) -> None:
        if happening.kind is HappeningKind.STARTED:
            observation.events.append(self._start(container, time_ns))
        elif happening.kind is HappeningKind.EXITED:
            observation.events.append(ended_event(container, happening.ran_ns, time_ns))
        loop = self._loops.take(replace(happening, container=container))
        if loop is not None:
            observation.events.append(loop_event(loop, time_ns))

    def _start(self, container: Container, time_ns: int) -> Event:
        key = container.runtime, container.id
        again = key in self._started or bool(container.restarts)
        self._started.add(key)
        before = self._ids.get(container.subject)
        if len(self._ids) >= _MAX_NAMES:
            self._ids.clear()
        self._ids[container.subject] = container.id
        if again and (before is None or before == container.id):
            return restarted_event(container, time_ns)
        return started_event(container, time_ns, before if before != container.id else None)

    def _note_failures(
        self, observation: Observation, failed: Mapping[str, Exception], now_ns: int
    ) -> None:
        """One runtime that does not answer: said once, and a gap until it does again.

        Its files may tell what there is meanwhile, but not all that happens.
        """
        for name, error in failed.items():
            if name not in self._failing_since:
                self._failing_since[name] = now_ns
                message = f"not followed: {error}"
                observation.events.append(Event(now_ns, "source_degraded", name, message))
        for name in [name for name in self._failing_since if name not in failed]:
            since = self._failing_since.pop(name)
            observation.add_gap(since, now_ns, "containers", f"{name} did not answer")


def _carried_on(before: Container | None, container: Container) -> Container:
    """A container as it is now, with what was known of it and is not said again."""
    if before is None:
        return container
    known = {name: value for name, value in asdict(before).items() if value is not None}
    said = {name: value for name, value in asdict(container).items() if value is not None}
    merged = Container(**{**known, **said})
    if container.state == "running":
        return replace(merged, exit_status=None, finished_wall_ns=None)
    return replace(merged, pid=container.pid)
