"""Containers that start again and again: restarted, or made anew under one name.

A supervisor that removes and re-creates its container leaves every counter at 0:
each id is new and was never restarted. What stays is the name, or, where docker
made the names up, the image. So starts are counted by those, whatever the ids.

In a pod nobody but the kubelet starts a container again, and only after it ended: there an
exit by signal 9 is a failure as well. That is how a container ends at its memory limit.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nodescope.judgement.loop_rules import (
    CONTAINER_WITHIN_NS,
    STEADY_NS,
    Loop,
    decide_by_counter,
    decide_container,
    decide_pod,
    mean_period_ns,
)
from nodescope.quantities import MINUTE_NS
from nodescope.sources.containers.container import Container, ContainerHappening, HappeningKind

STOPPED = (0, 130, 137, 143)  # ended well, or by somebody's wish: INT, KILL, TERM
_KEPT = 256  # starts of one subject
_MAX_SUBJECTS = 4096
_MADE_UP = re.compile(r"[a-z]+_[a-z]+\d?")  # docker's names: adjective_surname


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerLoop(Loop):
    """A container that loops; `name` is what stays the same."""

    by_image: bool  # the name is an image's: its containers have no names of their own
    runtime: str
    ids: int
    exit_statuses: tuple[int, ...]  # the different ones seen, in order of size
    longest_ran_ns: int | None
    cgroup_parent: str | None
    counted: int | None = None  # restarts since its pod was made, as the kubelet counts them

    @property
    def per_minute(self) -> float | None:
        """Starts per minute; None where all were at one moment."""
        span = (self.last_ns or 0) - (self.since_ns or 0)
        return None if span <= 0 else (self.times - 1) * MINUTE_NS / span

    @property
    def new_ids(self) -> bool:
        """Return whether the container is made anew rather than restarted."""
        return self.ids > 1

    def describe(self) -> str:
        """The loop in words."""
        how = f"{self.ids} ids under one {'image' if self.by_image else 'name'}"
        said = [f"{self.times} start{'s' * (self.times > 1)}"]
        if self.new_ids or self.times > 1:
            said.append(how if self.new_ids else "restarted under one id")
        if self.counted is not None:
            said.append(f"{self.counted} restarts since its pod was made")
        if self.per_minute is not None:
            said.append(f"{self.per_minute:.1f} per minute")
        if self.exit_statuses:
            codes = ", ".join(str(code) for code in self.exit_statuses[:5])
            said.append(f"exit code {codes}")
        return ", ".join(said)


def loops_by_counter(container: Container, wall_ns: int) -> bool:
    """Decide by the engine's counter alone: it waits for its next start, or this run is young.

    Young is less than the half hour within which starts make a loop: the answer is the same
    at every moment of one that goes on.
    """
    began = container.started_wall_ns
    young = began is not None and wall_ns - began < CONTAINER_WITHIN_NS
    return decide_by_counter(
        container.restarts, waits=container.state == "restarting", just_started=young
    )


class _Start(NamedTuple):
    """A start: when, the id and name of the container, and restarts as its runtime counts."""

    wall_ns: int
    id: str
    name: str
    restarts: int | None


class _End(NamedTuple):
    """An end: when, the exit status, and how long the run had lasted."""

    wall_ns: int
    status: int | None
    ran_ns: int | None


@dataclass(slots=True)
class _Track:
    """The latest starts and ends of one subject."""

    runtime: str
    in_pod: bool
    starts: deque[_Start] = field(default_factory=lambda: deque(maxlen=_KEPT))
    ends: deque[_End] = field(default_factory=lambda: deque(maxlen=_KEPT))
    restarted_ns: int | None = None  # the latest start of an id that had run before
    parent: str | None = None

    def count_failures(self, ends: Iterable[_End]) -> int:
        """Return how many runs failed."""
        well = (0,) if self.in_pod else STOPPED
        return sum(end.status is not None and end.status not in well for end in ends)


class LoopWatch:
    """Takes in what happens, in order of time, and tells what loops."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[str, str], _Track] = {}
        self._told: dict[tuple[str, str], int] = {}

    def take(self, happening: ContainerHappening) -> ContainerLoop | None:
        """Take in one happening; a loop, if it has just begun to be one."""
        begun = None
        for key in _keys(happening.container):
            self._note(key, happening)
            loop = self._find(key, happening.wall_ns)
            if loop is None or happening.kind is not HappeningKind.STARTED:
                continue
            if happening.wall_ns - self._told.get(key, -CONTAINER_WITHIN_NS) >= CONTAINER_WITHIN_NS:
                begun = begun or loop
            self._told[key] = happening.wall_ns
        return begun

    def loops(self, wall_ns: int) -> list[ContainerLoop]:
        """All that loop at that time."""
        found = [self._find(key, wall_ns) for key in self._tracks]
        return [loop for loop in found if loop is not None]

    def _note(self, key: tuple[str, str], happening: ContainerHappening) -> None:
        container = happening.container
        track = self._tracks.get(key)
        if track is None:
            if len(self._tracks) >= _MAX_SUBJECTS:
                self._forget(happening.wall_ns)
            track = self._tracks.setdefault(
                key, _Track(container.runtime, container.pod is not None)
            )
        track.parent = container.cgroup_parent or track.parent
        if happening.kind is HappeningKind.STARTED:
            if any(start.id == container.id for start in track.starts):
                track.restarted_ns = happening.wall_ns
            name, restarts = container.name or "", container.restarts
            track.starts.append(_Start(happening.wall_ns, container.id, name, restarts))
        elif happening.kind is HappeningKind.EXITED:
            end = _End(happening.wall_ns, container.exit_status, happening.ran_ns)
            track.ends.append(end)

    def _forget(self, wall_ns: int) -> None:
        """Drop what has been quiet for long, or everything if nothing was."""
        since = wall_ns - CONTAINER_WITHIN_NS
        self._tracks = {
            key: track
            for key, track in self._tracks.items()
            if track.starts and track.starts[-1].wall_ns >= since
        }
        if len(self._tracks) >= _MAX_SUBJECTS:
            self._tracks.clear()
        self._told = {key: at for key, at in self._told.items() if key in self._tracks}

    def _find(self, key: tuple[str, str], wall_ns: int) -> ContainerLoop | None:
        track = self._tracks[key]
        since = wall_ns - CONTAINER_WITHIN_NS
        starts = [start for start in track.starts if since <= start.wall_ns <= wall_ns]
        ends = [end for end in track.ends if since <= end.wall_ns]
        codes = [end.status for end in ends if end.status is not None]
        failures = track.count_failures(ends)
        by_image = key[0] == "image"
        loops = decide_container(
            len(starts),
            names=len({start.name for start in starts}) if by_image else None,
            restarted=track.restarted_ns is not None and track.restarted_ns >= since,
            failures=failures,
        )
        if not starts or not (loops or (track.in_pod and _loops_in_pod(starts, ends, failures))):
            return None
        counted = [start.restarts for start in starts if start.restarts is not None]
        return ContainerLoop(
            kind="container",
            name=key[1],
            times=len(starts),
            since_ns=starts[0].wall_ns,
            last_ns=starts[-1].wall_ns,
            period_ns=mean_period_ns([start.wall_ns for start in starts]),
            failures=failures,
            ends=tuple(f"exit code {code}" for code in sorted(set(codes))),
            by_image=by_image,
            runtime=track.runtime,
            ids=len({start.id for start in starts}),
            exit_statuses=tuple(sorted(set(codes))),
            longest_ran_ns=max(
                (end.ran_ns for end in ends if end.ran_ns is not None), default=None
            ),
            cgroup_parent=track.parent,
            counted=max(counted) if track.in_pod and counted else None,
        )


def _loops_in_pod(starts: Sequence[_Start], ends: Sequence[_End], failures: int) -> bool:
    """Decide by the kubelet's restarts: a start of a pod that was made anew counts none."""
    again = sum(bool(start.restarts) for start in starts)
    counted = max((start.restarts or 0 for start in starts), default=0)
    short = any(end.ran_ns is not None and end.ran_ns < STEADY_NS for end in ends)
    return decide_pod(failures, again, counted, short=short)


def _keys(container: Container) -> list[tuple[str, str]]:
    keys = [("name", container.subject)]
    if container.image and not container.pod and _MADE_UP.fullmatch(container.name or ""):
        keys.append(("image", container.image))
    return keys


def find_loops(happenings: Iterable[ContainerHappening], wall_ns: int) -> list[ContainerLoop]:
    """Find the loops at a time, from all events before it."""
    watch = LoopWatch()
    for happening in sorted(happenings, key=lambda each: each.wall_ns):
        watch.take(happening)
    return watch.loops(wall_ns)
