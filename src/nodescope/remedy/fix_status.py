"""The fixes applied on a node: each plan's steps with their state, from the journals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nodescope.records.json import JsonObject
from nodescope.remedy.journal import StepAttempt, fixes_folder, list_journals, read_journal
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan_words import describe_step_kind

StepState = Literal["under way", "applied", "failed", "being undone", "undone", "not undone"]
VERDICT_SUFFIX = ".verdict.json"


@dataclass(frozen=True, slots=True)
class StepStatus:
    """One step of an applied plan."""

    number: int
    title: str
    state: StepState
    time_ns: int  # of the last thing that happened to it
    error: str | None


@dataclass(frozen=True, slots=True)
class FixStatus:
    """One plan that was applied here, wholly or in part."""

    plan: str
    steps: tuple[StepStatus, ...]
    verdict: JsonObject | None  # the last one that `fix validate` reached


def read_fixes(node: NodeAccess) -> list[FixStatus]:
    """Return the plans that were applied on this node, the last one first."""
    folder = fixes_folder(node.places)
    found = []
    for path in list_journals(folder):
        latest = {each.number: each for each in read_journal(path)}
        steps = tuple(_status(latest[number]) for number in sorted(latest))
        found.append(FixStatus(path.stem, steps, read_verdict(folder, path.stem)))
    return sorted(found, key=lambda fix: -max((s.time_ns for s in fix.steps), default=0))


def _status(attempt: StepAttempt) -> StepStatus:
    time_ns = attempt.undone_ns or attempt.ended_ns or attempt.begun_ns
    return StepStatus(
        attempt.number, describe_step_kind(attempt.step), state_of(attempt), time_ns, attempt.error
    )


def state_of(attempt: StepAttempt) -> StepState:
    """Return how far an attempt is."""
    if attempt.undone_ns is not None:
        return "undone"
    if attempt.kept:
        return "not undone"
    if attempt.undo_begun:
        return "being undone"
    if attempt.error is not None:
        return "failed"
    return "under way" if attempt.after is None else "applied"


def write_verdict(folder: Path, plan: str, verdict: JsonObject) -> None:
    """Leave a verdict beside the journal of its plan; one that cannot be left is only printed."""
    path = folder / f"{plan}{VERDICT_SUFFIX}"
    scratch = path.with_suffix(".new")
    try:
        scratch.write_text(json.dumps(verdict))
        scratch.replace(path)
    except OSError:
        return  # somebody else's journal, or a full disk: the verdict itself stands


def read_verdict(folder: Path, plan: str) -> JsonObject | None:
    """Read the last verdict on a plan; None if there is none."""
    try:
        found = json.loads((folder / f"{plan}{VERDICT_SUFFIX}").read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
