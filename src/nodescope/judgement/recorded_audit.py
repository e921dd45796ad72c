"""An audit of what a recording has: the verdicts of `nodescope audit` at a moment of the past.

Recorded rows and events become the same typed facts that a live node gives (units, their
lives, containers and what happened to them, loops inside units), and the same functions
judge them. What a recording does not have is not judged, and is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

from nodescope.judgement.containers import audit_containers, read_happenings
from nodescope.judgement.lapses import describe_lapse
from nodescope.judgement.loop_rules import ENDS_WITHIN_NS, OVER_AFTER_NS
from nodescope.judgement.recorded_loops import HIDDEN_KINDS, read_inside
from nodescope.judgement.unit_insides import ChildLoop, HiddenFacts, LoggedEnds
from nodescope.judgement.unit_use import is_asked_by_preset_alone
from nodescope.judgement.units import audit_units
from nodescope.judgement.verdict import (
    UNIT_STATES,
    Audit,
    AuditFinding,
    AuditVerdict,
    sort_findings,
)
from nodescope.quantities import SECOND_NS
from nodescope.recording.coverage import NotObserved
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import UnitLinesDetails, UnitRunDetails
from nodescope.records.node_tables import ContainerRow, SourceCostRow, UnitRow
from nodescope.sources.containers.container import Container
from nodescope.sources.systemd.happenings import UnitHappening
from nodescope.sources.systemd.lives import Lives
from nodescope.sources.systemd.survey import Survey
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.systemd.unit_processes import Insides

_HAPPENED = ("unit_started", "unit_exit", "unit_failed", "unit_restart", "unit_start_failed")
LINES_KIND = "unit_logs_ends"
_NEVER_RECORDED = "what units listen on and hold open, so whether they are used"
_SHARED = {each.name for each in fields(Unit)} & set(UnitRow.names()) - {"wanted_by"}


@dataclass(frozen=True, slots=True)
class RecordedAudit:
    """The verdicts at a moment, as far as it was recorded."""

    at_ns: int
    audit: Audit
    units: list[UnitRow]  # all that were known then
    containers: list[Container]  # likewise, and those that something happened to lately


def audit_recording(recording: Recording, at_ns: int) -> RecordedAudit | NotObserved:
    """Judge what was known of units and containers at a moment."""
    lately = Window(at_ns - ENDS_WITHIN_NS, at_ns + 1)
    happened = recording.events(lately, *_HAPPENED)
    units = recording.state(UnitRow, at_ns)
    listed = bool(units)
    if not units:
        units = _named_by(happened)
    happenings = read_happenings(recording, at_ns)
    seen = {table: bool(recording.coverage(table, lately)) for table in ("units", "containers")}
    looked = listed or any(seen.values())
    seen["containers"] = seen["containers"] or bool(happenings)
    findings: list[AuditVerdict] = []
    findings += _audit_units(recording, units, happened, at_ns)
    rows = recording.state(ContainerRow, at_ns)
    containers = [container_of(row) for row in rows if row.state != "removed"]
    findings += audit_containers(containers, happenings, at_ns)
    if not findings and not looked:  # events that tell of no trouble are no all-clear
        return NotObserved("units and containers", Window(at_ns, at_ns + 1))
    states = (UNIT_STATES,) if units and not _has_states(units, happened) else ()
    asked = {row.source for row in recording.state(SourceCostRow, at_ns)}
    reported = {event.kind for event in recording.events(lately, *HIDDEN_KINDS, LINES_KIND)}
    lapsed = {table: describe_lapse(recording, table, table, at_ns) for table in seen}
    by_events = {"units": bool(happened), "containers": bool(happenings)}
    unseen = (
        *((lapse is None or by_events[table], lapse or table) for table, lapse in lapsed.items()),
        ("unit_insides" in asked or reported & {*HIDDEN_KINDS}, "what runs inside units"),
        ("unit_lines" in asked or LINES_KIND in reported, "what units log of failed ends"),
        (False, _NEVER_RECORDED),
    )
    not_observed = (*states, *(what for there, what in unseen if not there))
    audit = Audit(sort_findings(findings), not_observed, states)
    known = [*(each.container for each in happenings), *containers]
    return RecordedAudit(at_ns, audit, units, known)


def lacks_unit_states(recording: Recording, at_ns: int) -> bool:
    """Decide whether units were listed at a moment and nothing reported what they did."""
    units = recording.state(UnitRow, at_ns)
    lately = Window(at_ns - ENDS_WITHIN_NS, at_ns + 1)
    return bool(units) and not _has_states(units, recording.events(lately, *_HAPPENED))


def _named_by(events: Iterable[Event]) -> list[UnitRow]:
    """Return the units that events name: a journal that was imported has no rows of them."""
    first = {event.subject: event.time_ns for event in reversed(list(events))}
    return [UnitRow(time_ns=time_ns, unit=name) for name, time_ns in first.items()]


def _has_states(units: Iterable[UnitRow], happened: Iterable[Event]) -> bool:
    """Decide whether the bus or the journal reported on units, and not their files alone."""
    counted = any(row.active is not None or row.starts is not None for row in units)
    return counted or any(True for _ in happened)


# -- units -----------------------------------------------------------------------


def _audit_units(
    recording: Recording, rows: Sequence[UnitRow], happened: Iterable[Event], at_ns: int
) -> Iterator[AuditFinding]:
    lives = Lives()
    lives.take(_happenings(happened))
    for row in rows:
        _complete(lives, row)
    survey = Survey(
        {row.unit: unit_of(row) for row in rows},
        lives,
        now_us=at_ns // 1000,
        live=any(row.active is not None for row in rows),
    )
    hidden = _read_hidden(recording, rows, at_ns)
    by_name = {row.unit: row for row in rows}
    for finding in audit_units(survey, Insides(), hidden):
        if is_asked_by_preset_alone(by_name[finding.name], rows):
            said = f"{finding.reason}; nothing but a preset asks for it"
            yield replace(finding, reason=said)
        else:
            yield finding


def unit_of(row: UnitRow) -> Unit:
    """Return a recorded unit; who depends on it was not recorded."""
    known = {name: getattr(row, name) for name in _SHARED}
    return Unit(row.unit, wanted_by=tuple((row.wanted_by or "").split()), dependants=None, **known)


def _happenings(events: Iterable[Event]) -> Iterator[UnitHappening]:
    """Give back what happened to units; an event of another hand may not name its run."""
    runs: dict[str, str] = {}
    for number, event in enumerate(events):
        kind, unit = event.kind.removeprefix("unit_"), event.subject
        details = event.get(UnitRunDetails)
        if details.invocation:
            runs[unit] = details.invocation
        elif kind == "started" or unit not in runs:
            runs[unit] = f"run {number}"
        key = (kind, unit, str(number))
        details = details.replace(invocation=runs[unit], result=details.result or "failed")
        yield UnitHappening(kind, unit, event.time_ns // 1000, key, details)


def _complete(lives: Lives, row: UnitRow) -> None:
    """Take what systemd and the recorder counted since boot: events are of the last hour."""
    life = lives.of.get(row.unit)
    if life is None:
        return
    life.starts = max(life.starts, row.starts or 0)
    life.failures = max(life.failures, row.failures or 0)
    life.successes = max(life.successes, row.successes or 0)
    life.restarts = max(life.restarts, row.restarts or 0)
    # That somebody stopped it is no event; a unit that loops is never inactive for long.
    life.stopped = row.active == "inactive"


def _read_hidden(
    recording: Recording, rows: Iterable[UnitRow], at_ns: int
) -> dict[str, HiddenFacts]:
    """Return the loops inside units that recorders reported and that went on at the moment."""
    children: dict[str, ChildLoop] = {}
    logged: dict[str, LoggedEnds] = {}
    window = Window(at_ns - OVER_AFTER_NS, at_ns + 1)
    for event in recording.events(window, *HIDDEN_KINDS, LINES_KIND):
        if event.kind == LINES_KIND:
            said = _read_logged(event)
            if said is not None:
                logged[event.subject] = said
            continue
        child = read_inside(event)
        if child is not None:
            children[event.subject] = child
    cgroups = {row.unit: row.cgroup for row in rows}
    same = {
        unit: child
        for unit, child in children.items()
        if not child.cgroup or child.cgroup == cgroups.get(unit, child.cgroup)
    }
    names = same.keys() | logged.keys()
    return {unit: HiddenFacts(same.get(unit), logged.get(unit)) for unit in names}


def _read_logged(event: Event) -> LoggedEnds | None:
    told = event.get(UnitLinesDetails)
    if told.times is None or told.last_line is None or told.over_s is None:
        return None
    return LoggedEnds(told.times, told.last_line, int(told.over_s * SECOND_NS))


# -- containers --------------------------------------------------------------------


def container_of(row: ContainerRow) -> Container:
    """Return a recorded container."""
    return Container(**{name: getattr(row, name) for name in row.names() if name != "time_ns"})
