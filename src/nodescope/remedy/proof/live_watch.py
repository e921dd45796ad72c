"""Watch a node after a plan was applied, where no recorder does: a few reads per look.

Units by systemd's own counters, containers by their runtimes' events, zombies and OOM kills by
the kernel's counts. Counters bridge the time between two looks; what has none (cgroups made,
pegged cores, resets) is left to a recorder and stays unobserved here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nodescope.errors import SourceError
from nodescope.quantities import SECOND_NS
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import Baseline, Plan
from nodescope.remedy.proof.aftermath import SETTLE_S, Aftermath, Afterwards, SourceState
from nodescope.remedy.proof.applied import Applied
from nodescope.remedy.proof.measure_series import is_container
from nodescope.remedy.proof.recorded_aftermath import judge_container, judge_unit, stopped_targets
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.cgroups.usage import parse_flat
from nodescope.sources.containers.container import HappeningKind
from nodescope.sources.containers.runtimes import Runtimes
from nodescope.sources.kernel_files import read_file
from nodescope.sources.memory_cgroups.counts import Counting
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.systemd.unit import Unit

_HOLE_S = 30.0  # without a look for so long (a suspended machine), nothing is known of the time


@dataclass(slots=True)
class _Tally:
    """One measure as it adds up."""

    before: Baseline
    count: float = 0.0
    since_s: float | None = None  # of the present unbroken observation
    last_s: float = 0.0
    observed_s: float = 0.0
    unbroken_s: float = 0.0
    readings: list[tuple[float, float]] = field(default_factory=list)
    lost: str = ""

    def see(self, now_s: float, more: float = 0.0, level: float | None = None) -> None:
        """Add a look that succeeded."""
        if self.since_s is None or now_s - self.last_s > _HOLE_S:
            self.since_s = now_s
        else:
            self.observed_s += now_s - self.last_s
        self.last_s = now_s
        self.unbroken_s = max(self.unbroken_s, now_s - self.since_s)
        self.count += more
        if level is not None:
            self.readings.append((now_s, level))

    def lose(self, why: str) -> None:
        """Note that a look failed: the unbroken observation ends."""
        self.since_s, self.lost = None, why

    def result(self) -> Aftermath:
        """Return what was observed."""
        seen = self.observed_s > 0
        return Aftermath(
            self.before.measure, self.before.subject, self.count if seen else None,
            self.observed_s, self.unbroken_s, tuple(self.readings), self.lost,
        )  # fmt: skip


class LiveWatch:
    """Looks at a node again and again; times are seconds since the plan was applied."""

    def __init__(
        self, node: NodeAccess, plan: Plan, before: Sequence[Baseline], applied: Applied
    ) -> None:
        self._node = node
        self._plan = plan
        self._applied = applied
        self._tallies = [_Tally(each) for each in before]
        self._units: dict[str, Unit] = {}
        self._runtimes: Runtimes | None = None
        self._started = False
        self._zombies: Counting | None = None
        self._kills: dict[str, int] = {}
        self._sources: list[SourceState] = []
        self._ran: dict[str, bool] = {}  # at every look so far
        self._now_ns = applied.at_ns
        self._rebooted = False

    def look(self, now_ns: int) -> None:
        """Look once."""
        now_s = (now_ns - self._applied.at_ns) / SECOND_NS
        self._now_ns = now_ns
        if now_s < SETTLE_S:
            return
        self._rebooted = self._rebooted or self._read_boot() not in ("", self._plan.boot)
        self._sources = []
        self._look_at_units(now_s)
        self._look_at_containers(now_s, now_ns)
        for tally in self._tallies:
            try:
                if tally.before.measure == "zombies":
                    self._count_zombies(tally, now_s)
                elif tally.before.measure == "oom_kills":
                    self._count_kills(tally, now_s)
            except SourceError as error:
                tally.lose(str(error))

    def tell(self) -> Afterwards:
        """Return what was observed up to the last look."""
        zombies = [each for each in self._plan.baselines if each.measure == "zombies"]
        return Afterwards(
            self._applied.at_ns,
            self._now_ns,
            tuple(each.result() for each in self._tallies),
            tuple(self._sources),
            self._rebooted,
            self._applied.undone,
            zombies[0].count if zombies else None,
            running=frozenset(name for name, always in self._ran.items() if always),
        )

    def close(self) -> None:
        """Close what was opened."""
        if self._runtimes is not None:
            self._runtimes.close()

    def _read_boot(self) -> str:
        try:
            path = self._node.places.proc / "sys/kernel/random/boot_id"
            return read_file(path).decode("ascii", "replace").strip()
        except SourceError:
            return ""

    # -- units -------------------------------------------------------------------------

    def _look_at_units(self, now_s: float) -> None:
        targets = [t.name for t in stopped_targets(self._plan) if t.kind == "unit" and t.name]
        mine = [each for each in self._tallies if each.before.measure == "unit_restarts"]
        names = list(dict.fromkeys([*targets, *(each.before.subject for each in mine)]))
        if not names:
            return
        try:
            units = self._node.manager.read_units(names)
        except SourceError as error:
            self._node.close()  # the next look connects anew
            for tally in mine:
                tally.lose(f"systemd does not answer: {error.reason}")
            self._sources += [SourceState("unit", each, None, str(error)) for each in targets]
            return
        for name in targets:
            unit = units.get(name)
            if unit is None:
                self._sources.append(judge_unit(name, "not-found", None, None))
            else:
                self._sources.append(judge_unit(name, unit.load, unit.active, unit.sub))
        for tally in mine:
            unit = units.get(tally.before.subject)
            if unit is None:
                tally.lose(f"systemd no longer knows {tally.before.subject}")
            else:
                tally.see(now_s, count_starts(self._units.get(unit.name), unit))
            runs = unit is not None and (unit.active, unit.sub) == ("active", "running")
            self._note_running(tally.before.subject, runs=runs)
        at_rest = {each.name for each in self._sources if each.at_rest}
        for tally in self._tallies:
            # Nothing fails inside a unit at rest; into a running one only a recorder looks.
            if tally.before.measure == "child_failures" and tally.before.subject in at_rest:
                tally.see(now_s)
        self._units = units

    def _note_running(self, name: str, *, runs: bool) -> None:
        self._ran[name] = runs and self._ran.get(name, True)

    # -- containers --------------------------------------------------------------------

    def _look_at_containers(self, now_s: float, now_ns: int) -> None:
        targets = [t.name for t in stopped_targets(self._plan) if t.kind == "container" and t.name]
        mine = [each for each in self._tallies if each.before.measure == "container_restarts"]
        if not targets and not mine:
            return
        self._runtimes = self._runtimes or Runtimes(self._node.engine_places)
        try:
            polled = self._runtimes.poll(now_ns)
        except SourceError as error:
            for tally in mine:
                tally.lose(str(error))
            self._sources += [SourceState("container", each, None, str(error)) for each in targets]
            return
        failed = "; ".join(map(str, polled.failed.values()))
        starts = [
            each.container.subject
            for each in polled.happenings
            if each.kind == HappeningKind.STARTED and self._started
        ]
        self._started = True
        for tally in mine:
            if failed:
                tally.lose(failed)
            else:
                name = tally.before.subject
                tally.see(now_s, sum(is_container(each, name) for each in starts))
                known = self._runtimes.containers.values()
                mine_now = [each for each in known if is_container(each.subject, name)]
                self._note_running(name, runs=any(each.running for each in mine_now))
        for name in targets:
            known = self._runtimes.containers.values()
            states = [each.state for each in known if is_container(each.subject, name)]
            if failed and not states:
                self._sources.append(SourceState("container", name, None, failed))
            else:
                self._sources.append(judge_container(name, states))

    # -- the kernel's counts -----------------------------------------------------------

    def _count_zombies(self, tally: _Tally, now_s: float) -> None:
        if self._zombies is None:
            self._zombies = Counting(find_memory_hierarchy(self._node.places))
        dying = self._zombies.read().dying
        if dying is None:
            tally.lose("only a part of the cgroup hierarchy is mounted here")
        else:
            tally.see(now_s, level=float(dying))

    def _count_kills(self, tally: _Tally, now_s: float) -> None:
        cgroup = tally.before.subject
        kills = self._read_kills(cgroup)
        if kills is None:
            tally.lose(f"{cgroup} is gone, or counts no kills")
            return
        tally.see(now_s, max(0, kills - self._kills.get(cgroup, kills)))
        self._kills[cgroup] = kills

    def _read_kills(self, cgroup: str) -> int | None:
        for each in read_hierarchies(self._node.places):
            if "memory" not in each.controllers:
                continue
            name = "memory.events" if each.version == 2 else "memory.oom_control"
            try:
                content = read_file(each.mount / cgroup.lstrip("/") / name)
            except SourceError:
                return None
            return parse_flat(content).get(b"oom_kill")
        return None


def count_starts(before: Unit | None, now: Unit) -> int:
    """Return how often a unit was started between two looks, as far as systemd counts."""
    if before is None or before.invocation is None or now.invocation == before.invocation:
        return 0
    # NRestarts begins anew with a manual start, and a run that began has a new invocation.
    return max(1, (now.restarts or 0) - (before.restarts or 0))
