"""`nodescope zombies` as the document of `--json`.

Imports neither numpy nor Arrow: the command answers in less time than they take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodescope.records.json import Json, JsonObject
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.judgement.zombie_report import Report
    from nodescope.sources.memory_cgroups.parents import Parent
    from nodescope.sources.memory_cgroups.pins import PinningFile

_JSON_FILES = 20_000


def report_document(report: Report) -> dict[str, Json]:
    """The document of `--json`."""
    count, verdict = report.reading, report.verdict
    document: dict[str, Json] = {
        "version": count.version,
        "tracked": count.tracked,
        "visible": count.visible,
        "dying": count.dying,
        "parents": [_parent_document(parent) for parent in count.parents],
        "verdict": verdict.level,
        "reasons": list(verdict.reasons),
        "thresholds": {"warn": verdict.warn_at, "critical": verdict.critical_at},
        "mount": count.mount,
        "whole": count.whole,
        "trend": _trend_document(report),
        "walk": None if count.walk is None else {
            "file": count.walk.file, "took_ns": count.walk.took_ns, "walks": verdict.walks,
        },
        "overhead_bytes": verdict.overhead_bytes,
        "advice": [
            {"parent": each.parent, "helps": each.helps, "text": each.text,
             "command": each.command}
            for each in report.advice
        ],
    }  # fmt: skip
    if count.read_ns is not None:
        document |= {"at": format_moment(count.read_ns), "not_observed": list(report.not_observed)}
    if report.heard is not None:
        document["watch"] = _watch_document(report)
    if report.search is not None:
        document["files"] = [_file_document(each) for each in report.search.files[:_JSON_FILES]]
        document["files_complete"] = report.search.complete and not report.search.not_searched
        document["files_left_out"] = max(0, len(report.search.files) - _JSON_FILES)
    if report.pages is not None:
        document["pages"] = {"one_in": report.pages_one_in, "bytes": report.pages}
    return document


def _parent_document(parent: Parent) -> JsonObject:
    read: JsonObject = {} if parent.read_ns is None else {"at": format_moment(parent.read_ns)}
    return {
        **read,
        "path": parent.path,
        "dying": parent.dying,
        "held": dict(parent.held),
        "known": "exact" if parent.exact else "estimate",
        "exact": parent.exact,
        "evidence": parent.evidence,
        "least": parent.dying if parent.least is None else parent.least,
        "most": parent.dying if parent.most is None else parent.most,
        "occupied": parent.occupied,
    }


def _trend_document(report: Report) -> JsonObject:
    trend = report.trend
    return {
        "source": None if trend is None else "recording" if report.recorded else "looks",
        "looks": None if trend is None else trend.looks,
        "over_ns": None if trend is None else trend.over_ns,
        "change": None if trend is None else trend.last - trend.first,
        "per_hour": None if trend is None else round(trend.per_hour, 3),
        "per_hour_since_boot": report.per_hour_since_boot,
        "time_to_critical_ns": report.to_critical_ns,
        "nature": report.nature,
    }


def _watch_document(report: Report) -> JsonObject:
    heard = report.heard
    assert heard is not None
    return {
        "seconds": heard.seconds,
        "way": heard.way,
        "lost": heard.lost,
        "makers": [
            {
                "parent": each.parent,
                "pattern": each.pattern,
                "maker": each.maker,
                "pids": sorted(each.pids),
                "made": each.made,
                "removed": each.removed,
                "unreleased": each.unreleased,
                "ran": dict(each.ran[:5]),
                "example": each.example,
            }
            for each in report.makers
        ],
    }


def _file_document(file: PinningFile) -> JsonObject:
    return {
        "parent": file.parent,
        "path": file.path,
        "kind": file.kind,
        "bytes": file.bytes,
        "pid": file.holder_pid,
        "comm": file.holder_comm,
    }
