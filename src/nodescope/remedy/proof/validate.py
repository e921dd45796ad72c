"""Follow a node after a plan was applied, and judge as the evidence comes.

A recording that covers the time is read (again and again while it grows); what it does not
have is watched on the node itself. The verdicts are `assess`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nodescope.errors import NodescopeError
from nodescope.quantities import MINUTE_NS, SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Baseline, Plan
from nodescope.remedy.proof.aftermath import Aftermath, Afterwards
from nodescope.remedy.proof.applied import Applied
from nodescope.remedy.proof.assess import Verdicts, assess
from nodescope.remedy.proof.baselines import read_target_baselines
from nodescope.remedy.proof.live_watch import LiveWatch
from nodescope.remedy.proof.recorded_aftermath import read_afterwards
from nodescope.wall_time import format_moment

LOOK_NS = 2 * SECOND_NS
_READ_NS = 10 * SECOND_NS  # between two reads of a recording that grows
_GROWS_NS = 2 * MINUTE_NS  # a recording that ended longer ago does not grow
_ENOUGH = 0.8  # of the time that a recording must cover to be preferred

Report = Callable[[Verdicts], None]


@dataclass(slots=True)
class Validation:
    """What is validated, and by what."""

    plan: Plan
    applied: Applied
    archive: Path | None = None
    node: NodeAccess | None = None  # None: only what was recorded
    clock: Callable[[], int] = time.time_ns
    wait: Callable[[float], None] = time.sleep

    def read_before(self) -> tuple[Baseline, ...]:
        """Return the baselines: the plan's own, else those of the recording before it."""
        if self.plan.baselines or self.archive is None:
            return self.plan.baselines
        targets = [step.target for step in self.plan.steps]
        recording = Recording.open(self.archive)
        return read_target_baselines(recording, targets, self.applied.begun_ns)

    def run(self, for_ns: int, report: Report) -> Verdicts:
        """Observe for so long after the plan, and report as it goes; Ctrl-C ends it early."""
        before = self.read_before()
        live = None
        if self.node is not None:
            live = LiveWatch(self.node, self.plan, before, self.applied)
        end_ns = self._end_ns(for_ns, live is not None)
        recorded, read_ns = self._read(before, end_ns), self.clock()
        verdicts = self._judge(before, recorded, live)
        try:
            while live is not None or self._grows(recorded):
                now_ns = self.clock()
                if now_ns - read_ns >= _READ_NS or now_ns >= end_ns:
                    recorded, read_ns = self._read(before, min(now_ns, end_ns)), now_ns
                verdicts = self._judge(before, recorded, live)
                report(verdicts)
                if now_ns >= end_ns:
                    break
                self.wait(min(LOOK_NS, end_ns - now_ns) / SECOND_NS)
        except KeyboardInterrupt:
            pass  # the verdict so far is what was asked for
        finally:
            if live is not None:
                live.close()
        return verdicts

    def _judge(
        self, before: Sequence[Baseline], recorded: Afterwards | None, live: LiveWatch | None
    ) -> Verdicts:
        if live is not None:
            live.look(self.clock())
        after = merge(recorded, None if live is None else live.tell(), self.applied)
        return assess(self.plan, before, after)

    def _end_ns(self, for_ns: int, live: bool) -> int:
        """Return when to stop: so long after the plan, or from now if nobody recorded it."""
        after_ns = self.applied.at_ns + for_ns
        if not live or self._recorded_to_ns() > self.applied.at_ns:
            return after_ns
        return max(after_ns, self.clock() + for_ns)

    def _recorded_to_ns(self) -> int:
        if self.archive is None:
            return 0
        try:
            return Recording.open(self.archive).extent.to_ns
        except NodescopeError:
            return 0

    def _read(self, before: Sequence[Baseline], until_ns: int) -> Afterwards | None:
        if self.archive is None:
            return None
        recording = Recording.open(self.archive)
        to_ns = recording.extent.to_ns
        if to_ns <= self.applied.at_ns:
            return None
        until_ns = min(until_ns, to_ns, self.clock())
        return read_afterwards(recording, self.plan, before, self.applied, until_ns)

    def _grows(self, recorded: Afterwards | None) -> bool:
        return recorded is not None and self._recorded_to_ns() > self.clock() - _GROWS_NS


def merge(recorded: Afterwards | None, live: Afterwards | None, applied: Applied) -> Afterwards:
    """Return what a recording and a look at the node show together."""
    if recorded is None and live is None:
        since = format_moment(applied.at_ns)
        lost = f"nothing was observed since {since}, when the plan was applied"
        return Afterwards(applied.at_ns, applied.at_ns, (), undone=applied.undone, lost=lost)
    if recorded is None or live is None:
        both = recorded or live
        assert both is not None
        return both
    watched = {(each.measure, each.subject): each for each in live.measures}
    measures = [
        better(each, watched[each.measure, each.subject])
        if (each.measure, each.subject) in watched
        else each
        for each in recorded.measures
    ]
    return replace(
        recorded,
        until_ns=max(recorded.until_ns, live.until_ns),
        measures=tuple(measures),
        sources=live.sources or recorded.sources,
        rebooted=recorded.rebooted or live.rebooted,
        running=live.running,
        zombies_before=(
            live.zombies_before if recorded.zombies_before is None else recorded.zombies_before
        ),
    )


def better(recorded: Aftermath, watched: Aftermath) -> Aftermath:
    """Return the one that saw more; anything that either saw happen has happened."""
    first, second = recorded, watched
    if watched.count is not None and (
        recorded.count is None or recorded.observed_s < _ENOUGH * watched.observed_s
    ):
        first, second = watched, recorded
    if first.count is not None and second.count is not None and not first.readings:
        return replace(first, count=max(first.count, second.count))
    return first
