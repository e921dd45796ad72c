"""What a recording shows of the time after a plan was applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodescope.judgement.zombie_reading import read_dying
from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Target
from nodescope.records.node_tables import ContainerRow, UnitRow
from nodescope.remedy.plan import Baseline, Plan
from nodescope.remedy.proof.aftermath import SETTLE_S, Aftermath, Afterwards, SourceState
from nodescope.remedy.proof.applied import Applied
from nodescope.remedy.proof.measure_series import is_container, read_series
from nodescope.wall_time import format_moment

_BOOTS_NS = SECOND_NS
_STOPPED = frozenset({"inactive", "failed"})
_ENDED = frozenset({"exited", "created", "removed", "dead", "stopped"})


def read_afterwards(
    recording: Recording, plan: Plan, before: Sequence[Baseline], applied: Applied, until_ns: int
) -> Afterwards:
    """Read everything that was recorded from the plan on, up to a moment."""
    from_ns = applied.at_ns + int(SETTLE_S * SECOND_NS)
    window = Window(from_ns, max(until_ns, from_ns + 1))
    return Afterwards(
        applied.at_ns,
        until_ns,
        tuple(_read_measure(recording, each, window) for each in before),
        tuple(read_sources(recording, stopped_targets(plan), until_ns)),
        rebooted=_is_rebooted(recording, plan.boot, window),
        undone=applied.undone,
        zombies_before=_zombies_before(recording, applied.begun_ns),
    )


def _read_measure(recording: Recording, before: Baseline, window: Window) -> Aftermath:
    series = read_series(recording, before.measure, before.subject, window)
    if series is None or not series.coverage:
        return Aftermath(
            before.measure, before.subject, None, 0.0, 0.0, lost="not recorded since the plan"
        )
    missing = series.coverage.missing
    lost = ""
    if missing:
        total_s = sum(each.length_ns for each in missing) / SECOND_NS
        lost = f"not recorded for {total_s:.0f} s since {format_moment(missing[0].from_ns)}"
    readings = tuple(
        ((time_ns - window.from_ns) / SECOND_NS, value) for time_ns, value in series.readings
    )
    return Aftermath(
        before.measure, before.subject, series.count, series.observed_s, series.unbroken_s,
        readings, lost,
    )  # fmt: skip


def stopped_targets(plan: Plan) -> list[Target]:
    """Return the units and containers that a plan stops, each once.

    Containers of pods are left out: one that ended looks the same whether it stays so or the
    kubelet waits to start it again.
    """
    kinds = ("stop_unit", "stop_container")
    stops = [step.target for step in plan.steps if step.kind in kinds and not _of_pod(step.target)]
    return list({(each.kind, each.name): each for each in stops}.values())


def _of_pod(target: Target) -> bool:
    return target.kind == "container" and target.within is not None


def read_sources(
    recording: Recording, targets: Iterable[Target], at_ns: int
) -> Iterable[SourceState]:
    """Yield how each of them was last recorded."""
    for target in targets:
        name = target.name or ""
        if target.kind == "unit":
            units = recording.state(UnitRow, at_ns)
            row = next((row for row in units if row.unit == name), None)
            if row is None:
                yield SourceState("unit", name, None, "not recorded")
            else:
                yield judge_unit(name, row.load, row.active, row.sub)
        elif target.kind == "container":
            yield _container(recording, name, at_ns)


def judge_unit(name: str, load: str | None, active: str | None, sub: str | None) -> SourceState:
    """Return whether a unit rests; one that waits for its restart does not."""
    seen = f"{active or '?'} ({sub or '?'})"
    if load == "not-found":
        return SourceState("unit", name, None, "its unit file is gone: nothing reports on it")
    if active is None:
        return SourceState("unit", name, None, "its state is not known")
    return SourceState("unit", name, active in _STOPPED and sub != "auto-restart", seen)


def _container(recording: Recording, name: str, at_ns: int) -> SourceState:
    if not recording.coverage("containers", Window(at_ns - SECOND_NS, at_ns)):
        return SourceState("container", name, None, "containers are not recorded")
    rows = [row for row in recording.state(ContainerRow, at_ns) if row.name]
    mine = [row for row in rows if is_container(row.name or "", name)]
    return judge_container(name, [row.state for row in mine])


def judge_container(name: str, states: Sequence[str | None]) -> SourceState:
    """Return whether a container rests, by the states of all that have its name."""
    awake = [each or "?" for each in states if each not in _ENDED]
    seen = ", ".join(awake) or ("ended" if states else "gone")
    return SourceState("container", name, not awake, seen)


def _is_rebooted(recording: Recording, boot: str, window: Window) -> bool:
    parts = recording.overlapping(window.widened(_BOOTS_NS))
    boots = {part.description.start.boot_id for part in parts} - {""}
    return bool(boot) and bool(boots - {boot})


def _zombies_before(recording: Recording, begun_ns: int) -> float | None:
    counted = read_dying(recording, Window(begun_ns - HOUR_NS, begun_ns))
    return float(counted[-1][1]) if counted else None
