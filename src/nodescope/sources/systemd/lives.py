"""The lives of units: what happened to each since boot, told by any number of witnesses.

Takes happenings in order, drops what was told before, completes one by the
others (how long a run lasted, how the run before a restart ended), and counts. Whether a
unit loops is for `judgement` to decide.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from nodescope.sources.systemd.happenings import CYCLE, ORDER, UnitHappening

_MAX_KEYS = 20_000
_MAX_UNITS = 5_000
_KEPT = 64


@dataclass(frozen=True, slots=True)
class UnitRun:
    """One run of a unit."""

    invocation: str
    started_us: int | None = None
    ended_us: int | None = None
    exit_kind: str | None = None
    exit_status: int | None = None
    result: str | None = None  # why it failed; None while it did not

    @property
    def succeeded(self) -> bool:
        return self.result is None and self.exit_kind == "exited" and not self.exit_status

    @property
    def lasted_us(self) -> int | None:
        if self.started_us is None or self.ended_us is None:
            return None
        return self.ended_us - self.started_us


@dataclass(slots=True)
class Life:
    """The known happenings of one unit since boot."""

    unit: str
    starts: int = 0
    failures: int = 0
    successes: int = 0
    restarts: int = 0
    counter: int | None = None  # NRestarts as it was last told
    start_failures: dict[str, int] = field(default_factory=dict)  # by the job's result
    runs: deque[UnitRun] = field(default_factory=lambda: deque(maxlen=_KEPT))
    restarted_us: deque[int] = field(default_factory=lambda: deque(maxlen=_KEPT))
    gave_up: bool = False  # the last that was heard is that it could not be started
    refused: bool = False  # it was to be restarted, and was not even tried: too often
    cycle_deleted: bool = False  # its start was left out to break a circle of units
    stopped: bool = False  # somebody had it stopped, and nobody started it since
    restarting: bool = False  # a restart was announced, and it did not start yet

    @property
    def last(self) -> UnitRun | None:
        """The latest run."""
        return self.runs[-1] if self.runs else None

    def run(self, invocation: str) -> UnitRun | None:
        """The run of that invocation, if it is remembered."""
        return next((run for run in reversed(self.runs) if run.invocation == invocation), None)

    def put(self, run: UnitRun) -> None:
        """Remember a run, in place of what was known of it."""
        for at in range(len(self.runs) - 1, -1, -1):
            if self.runs[at].invocation == run.invocation:
                self.runs[at] = run
                return
        self.runs.append(run)


class Lives:
    """The lives of all units."""

    def __init__(self) -> None:
        self.of: dict[str, Life] = {}
        self._keys: OrderedDict[tuple[str, ...], None] = OrderedDict()

    def knows(self, happening: UnitHappening) -> bool:
        """Return whether this happening was already reported."""
        return happening.key in self._keys

    def take(self, happenings: Iterable[UnitHappening]) -> list[UnitHappening]:
        """Return what of them is new, in order and completed."""
        return list(self.follow(happenings))

    def follow(self, happenings: Iterable[UnitHappening]) -> Iterator[UnitHappening]:
        """Pass on what of them is new, each while the lives stand as it left them."""
        for happening in _ordered(happenings):
            if self.knows(happening):
                continue
            self._keys[happening.key] = None
            if len(self._keys) > _MAX_KEYS:
                self._keys.popitem(last=False)
            new = self._live(happening)
            if new is not None:
                yield new

    def _live(self, happening: UnitHappening) -> UnitHappening | None:
        life = self.of.get(happening.unit)
        if life is None:
            if len(self.of) >= _MAX_UNITS:
                self.of.pop(next(iter(self.of)))
            life = self.of[happening.unit] = Life(happening.unit)
        if happening.kind == "stopped":
            life.stopped = True
            return None
        return _LIVED[happening.kind](life, happening)


def _ordered(happenings: Iterable[UnitHappening]) -> list[UnitHappening]:
    """In the order of time; of what two tell, the one with the exact time."""
    best: dict[tuple[str, ...], UnitHappening] = {}
    for each in happenings:
        if each.key not in best or (each.exact and not best[each.key].exact):
            best[each.key] = each
    return sorted(best.values(), key=lambda each: (each.time_us, ORDER.index(each.kind)))


def _with_end(happening: UnitHappening, run: UnitRun | None) -> UnitHappening:
    """Return a happening with how that run ended, if it is known."""
    if run is None or run.exit_kind is None:
        return happening
    details = happening.details.replace(exit_kind=run.exit_kind, exit_status=run.exit_status)
    return replace(happening, details=details)


def _started(life: Life, happening: UnitHappening) -> UnitHappening:
    life.starts += 1
    life.gave_up = life.refused = life.cycle_deleted = life.stopped = life.restarting = False
    invocation = happening.details.invocation or ""
    known = life.run(invocation) or UnitRun(invocation)
    life.put(replace(known, started_us=happening.time_us))
    return happening


def _exited(life: Life, happening: UnitHappening) -> UnitHappening:
    details = happening.details
    invocation = details.invocation or ""
    run = replace(
        life.run(invocation) or UnitRun(invocation),
        ended_us=happening.time_us,
        exit_kind=details.exit_kind,
        exit_status=details.exit_status,
    )
    life.put(run)
    if run.succeeded:
        life.successes += 1
    lasted = run.lasted_us
    ran_s = None if lasted is None else round(lasted / 1e6, 3)
    return replace(happening, details=details.replace(ran_s=ran_s))


def _failed(life: Life, happening: UnitHappening) -> UnitHappening:
    life.failures += 1
    run = life.run(happening.details.invocation or "")
    if run is not None:
        life.put(replace(run, result=happening.details.result))
    return _with_end(happening, run)


def _start_failed(life: Life, happening: UnitHappening) -> UnitHappening:
    result = happening.details.result or "failed"
    life.start_failures[result] = life.start_failures.get(result, 0) + 1
    life.gave_up = True
    life.refused |= life.restarting and result == "failed"
    life.cycle_deleted |= result == CYCLE
    return happening


def _restarted(life: Life, happening: UnitHappening) -> UnitHappening:
    life.restarts += 1
    life.restarting = True
    life.counter = happening.details.restarts
    life.restarted_us.append(happening.time_us)
    return _with_end(happening, life.run(happening.details.invocation or ""))


_LIVED = {
    "restart": _restarted,
    "started": _started,
    "exit": _exited,
    "failed": _failed,
    "start_failed": _start_failed,
}
