"""Containers that start again and again: restarted, or made anew under one name.

A supervisor that removes and re-creates its container leaves every counter at 0:
each id is new and was never restarted. What stays is the name, or, where docker
made the names up, the image. So starts are counted by those, whatever the ids.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from nodescope.judgement.loop_rules import (
    CONTAINER_WITHIN_NS,
    Loop,
    decide_container,
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
        said = [f"{self.times} starts", how if self.new_ids else "restarted under one id"]
        if self.per_minute is not None:
            said.append(f"{self.per_minute:.1f} per minute")
        if self.exit_statuses:
            codes = ", ".join(str(code) for code in self.exit_statuses[:5])
            said.append(f"exit code {codes}")
        return ", ".join(said)


@dataclass(slots=True)
class _Track:
    """The latest starts and ends of one subject."""

    runtime: str
    starts: deque[tuple[int, str, str]] = field(default_factory=lambda: deque(maxlen=_KEPT))
    ends: deque[tuple[int, int | None, int | None]] = field(
        default_factory=lambda: deque(maxlen=_KEPT)
    )
    restarted_ns: int | None = None  # the latest start of an id that had run before
    parent: str | None = None


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
            track = self._tracks.setdefault(key, _Track(container.runtime))
        track.parent = container.cgroup_parent or track.parent
        if happening.kind is HappeningKind.STARTED:
            if any(identifier == container.id for _, identifier, _ in track.starts):
                track.restarted_ns = happening.wall_ns
            track.starts.append((happening.wall_ns, container.id, container.name or ""))
        elif happening.kind is HappeningKind.EXITED:
            track.ends.append((happening.wall_ns, container.exit_status, happening.ran_ns))

    def _forget(self, wall_ns: int) -> None:
        """Drop what has been quiet for long, or everything if nothing was."""
        since = wall_ns - CONTAINER_WITHIN_NS
        self._tracks = {
            key: track
            for key, track in self._tracks.items()
            if track.starts and track.starts[-1][0] >= since
        }
        if len(self._tracks) >= _MAX_SUBJECTS:
            self._tracks.clear()
        self._told = {key: at for key, at in self._told.items() if key in self._tracks}

    def _find(self, key: tuple[str, str], wall_ns: int) -> ContainerLoop | None:
        track = self._tracks[key]
        since = wall_ns - CONTAINER_WITHIN_NS
        starts = [start for start in track.starts if since <= start[0] <= wall_ns]
        ends = [end for end in track.ends if since <= end[0]]
        codes = [code for _, code, _ in ends if code is not None]
        failures = sum(code not in STOPPED for code in codes)
        by_image = key[0] == "image"
        if not decide_container(
            len(starts),
            names=len({name for _, _, name in starts}) if by_image else None,
            restarted=track.restarted_ns is not None and track.restarted_ns >= since,
            failures=failures,
        ):
            return None
        return ContainerLoop(
            kind="container",
            name=key[1],
            times=len(starts),
            since_ns=starts[0][0],
            last_ns=starts[-1][0],
            period_ns=mean_period_ns([start[0] for start in starts]),
            failures=failures,
            ends=tuple(f"exit code {code}" for code in sorted(set(codes))),
            by_image=by_image,
            runtime=track.runtime,
            ids=len({identifier for _, identifier, _ in starts}),
            exit_statuses=tuple(sorted(set(codes))),
            longest_ran_ns=max((ran for _, _, ran in ends if ran is not None), default=None),
            cgroup_parent=track.parent,
        )


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
