"""A plan as JSON, written and read back without trusting it.

The file may have been edited in a review, or by somebody else: what does not fit the
declared form is refused by name, before anything is done with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar, get_args

from nodescope.errors import SourceError, UsageError
from nodescope.records.action import Target, TargetName
from nodescope.records.json import Json, JsonObject
from nodescope.remedy.plan import (
    PLAN_VERSION,
    Baseline,
    Fact,
    Plan,
    PlanStep,
    Predicted,
    Refused,
    StepName,
)
from nodescope.wall_time import format_moment
from nodescope.wire.json_fields import parse_object, read_bounded

_MOST_BYTES = 64 << 20  # a plan may list a hundred thousand files that pin zombies
_T = TypeVar("_T")


def plan_document(plan: Plan) -> dict[str, Json]:
    """Return a plan as JSON."""
    return {
        "version": PLAN_VERSION,
        "id": plan.id,
        "node": plan.node,
        "boot": plan.boot,
        "made": format_moment(plan.made_ns),
        "made_ns": plan.made_ns,
        "expires": format_moment(plan.expires_ns),
        "expires_ns": plan.expires_ns,
        "rests_on": [asdict(each) for each in plan.rests_on],
        "steps": [step_document(each) for each in plan.steps],
        "refused": [
            {"target": _target_document(each.target), "reason": each.reason,
             "override": each.override}
            for each in plan.refused
        ],
        "cannot": list(plan.cannot),
        "baselines": [asdict(each) for each in plan.baselines],
        "elsewhere": dict(plan.elsewhere or {}),
        "archive": plan.archive,
    }  # fmt: skip


def step_document(step: PlanStep) -> dict[str, Json]:
    """Return a step as JSON, for a plan and for its journal."""
    return {
        "kind": step.kind,
        "target": _target_document(step.target),
        "why": step.why,
        "arguments": dict(step.arguments),
        "changes": list(step.changes),
        "command": list(step.command),
        "undo": step.undo,
        "predicts": [asdict(each) for each in step.predicts],
        "consent": step.consent,
    }


def _target_document(target: Target) -> dict[str, Json]:
    return {name: value for name, value in asdict(target).items() if value is not None}


# -- reading -------------------------------------------------------------------------


def read_plan(path: Path) -> Plan:
    """Read a plan from a file; `UsageError` says what is wrong with it."""
    try:
        return parse_plan(parse_object(read_bounded(path, _MOST_BYTES), path), str(path))
    except SourceError as error:
        raise UsageError(
            f"{path} is not a plan: {error.reason}",
            hint="make one by `nodescope fix plan --json > plan.json`",
        ) from error


def parse_plan(document: JsonObject, path: str = "the plan") -> Plan:
    """Return the plan that a document describes."""
    fields = _Fields(document, path)
    version = fields.get("version", int)
    if version != PLAN_VERSION:
        raise UsageError(
            f"{path}: a plan of version {version}; this Nodescope knows {PLAN_VERSION}",
            hint="make the plan again on the node",
        )
    plan = Plan(
        node=fields.get("node", str),
        boot=fields.get("boot", str),
        made_ns=fields.get("made_ns", int),
        expires_ns=fields.get("expires_ns", int),
        rests_on=fields.each("rests_on", _parse_fact),
        steps=fields.each("steps", _parse_step),
        refused=fields.each("refused", _parse_refused),
        cannot=fields.texts("cannot"),
        baselines=fields.each("baselines", _parse_baseline),
        elsewhere=fields.mapping("elsewhere"),
        archive=fields.optional("archive"),
    )
    if fields.get("id", str) != plan.id:
        raise UsageError(
            f"{path}: its id does not fit its content: it was changed after it was made",
            hint="make the plan again; what it should leave out is an option of `fix plan`",
        )
    return plan


class _Fields:
    """The fields of one object of a plan, each of the type it must have."""

    def __init__(self, document: JsonObject, where: str) -> None:
        self._document = document
        self._where = where

    def get(self, name: str, kind: type[_T]) -> _T:
        value = self._document.get(name)
        if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
            return value
        raise UsageError(f"{self._where}: {name} is missing, or not what it should be")

    def number(self, name: str) -> float:
        value = self._document.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        raise UsageError(f"{self._where}: {name} is not a number")

    def maybe_number(self, name: str) -> float | None:
        return None if self._document.get(name) is None else self.number(name)

    def optional(self, name: str) -> str | None:
        return None if self._document.get(name) is None else self.get(name, str)

    def each(self, name: str, parse: Callable[[_Fields], _T]) -> tuple[_T, ...]:
        found = []
        for number, value in enumerate(self._list(name), 1):
            if not isinstance(value, Mapping):
                raise UsageError(f"{self._where}: {name} {number} is not an object")
            found.append(parse(_Fields(value, f"{self._where}: {name} {number}")))
        return tuple(found)

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(str(each) for each in self._list(name))

    def mapping(self, name: str) -> dict[str, str]:
        value = self._document.get(name)
        if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
            raise UsageError(f"{self._where}: {name} is not a table of texts")
        return {key: str(text) for key, text in value.items()}

    def target(self) -> Target:
        fields = self.get("target", dict)
        for kind in get_args(TargetName):
            if fields.get("kind") == kind:
                rest = ("name", "within", "runtime", "file_state")
                return Target(kind, **{name: str(fields[name]) for name in rest if name in fields})
        raise UsageError(f"{self._where}: no such target: {fields.get('kind')!r}")

    def _list(self, name: str) -> Sequence[Json]:
        value = self._document.get(name)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return value
        raise UsageError(f"{self._where}: {name} is missing, or not a list")


def _parse_fact(fields: _Fields) -> Fact:
    return Fact(fields.get("kind", str), fields.get("subject", str), fields.get("value", str))


def parse_step(document: JsonObject, where: str = "a step") -> PlanStep:
    """Return the step that `step_document` wrote; `UsageError` if it is none."""
    return _parse_step(_Fields(document, where))


def _parse_step(fields: _Fields) -> PlanStep:
    written = fields.get("kind", str)
    for kind in get_args(StepName):
        if kind == written:
            return PlanStep(
                kind, fields.target(), fields.get("why", str), fields.mapping("arguments"),
                fields.texts("changes"), fields.texts("command"), fields.get("undo", str),
                fields.each("predicts", _parse_predicted), fields.get("consent", str),
            )  # fmt: skip
    raise UsageError(
        f"no such kind of step: {written!r}", hint="the plan may be of a later Nodescope"
    )


def _parse_predicted(fields: _Fields) -> Predicted:
    return Predicted(
        fields.get("what", str), fields.number("amount"), fields.number("low"),
        fields.number("high"), fields.get("because", str),
    )  # fmt: skip


def _parse_refused(fields: _Fields) -> Refused:
    return Refused(fields.target(), fields.get("reason", str), fields.get("override", str))


def _parse_baseline(fields: _Fields) -> Baseline:
    role = fields.get("role", str)
    blocks = fields.maybe_number("blocks")
    return Baseline(
        fields.get("measure", str), fields.get("subject", str),
        "outcome" if role == "outcome" else "mechanism",
        fields.number("count"), fields.number("exposure_s"),
        fields.maybe_number("slope_per_s"), fields.maybe_number("overdispersion"),
        fields.maybe_number("longest_gap_s"), fields.maybe_number("backoff_s"),
        fields.maybe_number("slope_sd_per_s"), fields.maybe_number("block_s"),
        None if blocks is None else round(blocks),
    )  # fmt: skip
