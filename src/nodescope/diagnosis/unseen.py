"""What a diagnosis could not see: sources that were not recorded, and tables that are damaged.

Both are named under `missing`. Where neither incident nor condition was found, `Diagnosis.blind`
says that this means nothing: nobody read the kernel log, or something that was recorded then
cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Diagnosis, Missing
from nodescope.quantities import format_count
from nodescope.recording.coverage import DamagedTable
from nodescope.records.event_details import CounterDetails, KernelLineDetails, NicDetails
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.view import View
from nodescope.wall_time import format_span

_NAMED_FILES = 3
_MOMENT = 0.1  # of the time that was recorded
_UNSEEN = {
    "kernel log": "resets and lockups would not be seen",
    "per-core time": "a core that is pegged would not be seen",
    "samples": "processes cannot be named",
    "packet work": "cores that starve their packets would not be seen",
}
_TABLES = {  # whose damage is the reason
    "kernel log": ("kernel_log", "events"),
    "per-core time": ("cores",),
    "samples": ("samples",),
    "packet work": ("softnet",),
}


def add_unseen(case: Case, result: Diagnosis) -> None:
    """Name what could not be seen, and decide whether silence means anything."""
    damaged = case.recording.damaged(case.reach)
    missing = _missing_sources(case)
    told = {each.what for each in result.missing}
    lost = {each.table for each in damaged}
    overwritten = _describe_overwritten(case)
    result.missing += [
        Missing("exact times", said) for said in case.recording.estimated_times[:_NAMED_FILES]
    ]
    result.missing += [*_describe_damage(damaged), *_describe_lost(case), *overwritten]
    if overwritten:
        for finding in result.findings:
            finding.at_least = finding.symptom.kind in EVENT_KINDS
    result.missing += [
        Missing(what, _UNSEEN[what], show=View("doctor"))
        for what in missing
        if what not in told and lost.isdisjoint(_TABLES[what])
    ]
    result.blind = bool("kernel log" in missing or damaged or case.recording.lost)


def advise(case: Case, result: Diagnosis) -> None:
    """Replace `doctor` where this machine is not the reason: imports, and what was left out."""
    if case.recording.imported:
        advice = "an import has only what its files hold: record the node itself"
    elif not case.events_of("source_denied", within=case.reach):
        advice = (
            "no source was refused: the observer was left out, or found nothing to read; "
            "`nodescope doctor` on the node shows which"
        )
    else:
        return
    result.missing = [_advised(each, advice) for each in result.missing]
    for finding in result.findings:
        finding.ends = None if finding.ends is None else _advised(finding.ends, advice)


def _advised(missing: Missing, advice: str) -> Missing:
    if missing.show != View("doctor"):
        return missing
    return replace(missing, advice=missing.advice or advice, show=None)


def _missing_sources(case: Case) -> list[str]:
    """Return the sources that were not observed and whose absence makes silence worth less."""
    seen = {
        # An imported log has no rows of its own: its lines are events.
        "kernel log": _was_observed(case, "kernel_log") or _has_kernel_lines(case),
        "per-core time": case.recorded("cores"),
        "samples": case.recorded("samples"),
        "packet work": _was_observed(case, "softnet"),
    }
    return [what for what, there in seen.items() if not there]


def _was_observed(case: Case, table: str) -> bool:
    """Decide whether a table was observed for more than a moment of the time that was recorded.

    A source that refuses is noted at its first reading, a moment after the recording begins.
    """
    seen = case.recording.coverage(table, case.reach).observed_ns
    recorded = case.recording.coverage("heartbeats", case.reach).observed_ns
    return seen > recorded * _MOMENT


def _has_kernel_lines(case: Case) -> bool:
    """Decide whether events were read from lines of a kernel's log, and not from counters alone."""
    lines = ("kernel", *(name for name, kind in EVENT_KINDS.items()
                         if issubclass(kind.details, KernelLineDetails)))  # fmt: skip
    return any(
        event.get(NicDetails).known_from is None and event.get(CounterDetails).known_from is None
        for event in case.events_of(*lines, within=case.reach)
    )


def _describe_damage(damaged: Sequence[DamagedTable]) -> Iterator[Missing]:
    """Yield each table that is damaged, with its files and the time that is lost."""
    for table, group in groupby(sorted(damaged, key=attrgetter("table")), attrgetter("table")):
        files = sorted(group, key=lambda each: each.span.from_ns)
        when = format_span(files[0].span.from_ns, max(each.span.to_ns for each in files))
        named = [f"{each.file} ({each.reason})" for each in files[:_NAMED_FILES]]
        more = len(files) - len(named)
        yield Missing(
            f"{table} (damaged)",
            f"what was recorded {when} cannot be read, so it is not known: "
            + ", ".join([*named, *([f"and {more} more"] if more else [])]),
            show=View("status"),
        )


def _describe_overwritten(case: Case) -> list[Missing]:
    """Return the lines of the kernel log that were overwritten before they were read."""
    gaps = case.recording.gaps(case.window)
    lost = [gap for gap in gaps if gap.source == "kernel_log" and gap.lost]
    if not lost:
        return []
    when = format_span(lost[0].from_ns, max(gap.to_ns for gap in lost))
    records = format_count(sum(gap.lost or 0 for gap in lost), "record")
    times = "" if len(lost) == 1 else f" at {len(lost)} times"
    return [
        Missing(
            "part of the kernel log",
            f"{records} were overwritten before they were read{times}, {when}: what is counted "
            "happened at least so often",
            show=View("status"),
        )
    ]


def _describe_lost(case: Case) -> list[Missing]:
    """Return the segments of which nothing can be read, as one thing that is missing."""
    lost = case.recording.lost
    if not lost:
        return []
    named = ", ".join(map(str, lost[:_NAMED_FILES]))
    more = f", and {len(lost) - _NAMED_FILES} more" if len(lost) > _NAMED_FILES else ""
    return [
        Missing(
            f"{format_count(len(lost), 'segment')} (damaged)",
            f"nothing that was recorded then can be read: {named}{more}",
            show=View("status"),
        )
    ]
