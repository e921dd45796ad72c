"""Units that restart again and again: by what happened to them, live, imported or recorded."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.judgement.loop_rules import (
    LONG_RUN_NS,
    UNIT_WITHIN_NS,
    Loop,
    decide_by_counter,
    decide_unit,
    describe_end,
    mean_period_ns,
)
from nodescope.sources.systemd.happenings import UnitHappening
from nodescope.sources.systemd.lives import Life, Lives, UnitRun
from nodescope.sources.systemd.unit import Unit

UNIT_WITHIN_US = UNIT_WITHIN_NS // 1000


def find_unit_loop(life: Life, now_us: int) -> Loop | None:
    """Return the loop of a unit at a time of its clock, if it loops."""
    ended = [run for run in life.runs if run.ended_us is not None]
    restarted = [time * 1000 for time in life.restarted_us]
    times = decide_unit(restarted, [_is_short(run) for run in ended], now_us * 1000)
    if not times:
        return None
    ends = (describe_end(run.exit_kind, run.exit_status) for run in ended)
    return Loop(
        kind="unit",
        name=life.unit,
        times=len(times),
        since_ns=times[0],
        last_ns=times[-1],
        period_ns=mean_period_ns(times),
        failures=life.failures,
        ends=tuple(dict.fromkeys(end for end in ends if end is not None)),
    )


def loops_now(unit: Unit, now_us: int) -> bool:
    """Decide by systemd's counter alone: it waits for its next start, or this run is young.

    Young is less than the ten minutes within which restarts make a loop, so that the answer
    is the same at every moment of one that goes on. A start by hand sets the counter to 0.
    """
    waits = unit.sub in ("auto-restart", "auto-restart-queued") or unit.active == "activating"
    began = unit.main_started_us or unit.active_since_us or unit.state_since_us
    young = began is not None and now_us - began < UNIT_WITHIN_US
    return decide_by_counter(unit.restarts, waits=waits, just_started=young)


def _is_short(run: UnitRun) -> bool:
    lasted = run.lasted_us
    return not run.succeeded or (lasted is not None and lasted * 1000 < LONG_RUN_NS)


class UnitLoops:
    """Follows the lives of units, and adds to what happened where a unit begins to loop.

    Loops are reported from `since_us` on: one that began before, at its first restart from
    then.
    """

    def __init__(self, lives: Lives | None = None) -> None:
        self.lives = Lives() if lives is None else lives
        self.since_us = 0
        self._reported: dict[str, bool] = {}  # units that loop, and whether that was reported

    def take(self, happenings: Iterable[UnitHappening]) -> list[UnitHappening]:
        """Return what of them is new, in order and completed, with loops that begin."""
        new: list[UnitHappening] = []
        for happening in self.lives.follow(happenings):
            new.append(happening)
            if happening.kind == "restart":
                new += self._judge(happening)
        return new

    def _judge(self, restart: UnitHappening) -> list[UnitHappening]:
        unit, time_us = restart.unit, restart.time_us
        if find_unit_loop(self.lives.of[unit], time_us) is None:
            self._reported.pop(unit, None)
            return []
        if self._reported.setdefault(unit, False) or time_us < self.since_us:
            return []
        self._reported[unit] = True
        details = restart.details.replace(invocation=None)
        return [UnitHappening("loop", unit, time_us, ("loop", unit, str(time_us)), details)]
