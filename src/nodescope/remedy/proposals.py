"""What a diagnosis proposes, as actions with their reasons, from its JSON.

A plan is made from the document, not from the objects behind it, so that one made here and
one made elsewhere (`fix plan --from diagnosis.json`) are read in one way. Only the first chain
of an incident counts, and only if it is more likely true than not. An incident's actions come
before a condition's. A unit or container whose limit an incident proposes to raise is not
stopped as well: what would mend it comes before what would end it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nodescope.errors import UsageError
from nodescope.records.action import Action, Target, parse_action
from nodescope.records.json import Json, JsonObject

LEAST_CONFIDENCE = 0.5
_NOT_DONE = frozenset({"look"})  # a person looks; a plan has nothing to do there
ENDS = frozenset({"stop_unit", "stop_container"})


@dataclass(frozen=True, slots=True)
class Proposal:
    """One action that a diagnosis proposes, and why."""

    action: Action
    why: str
    confidence: float | None = None  # of the chain; None: a condition, or a person's wish


@dataclass(frozen=True, slots=True)
class Proposals:
    """The actions in the order of the diagnosis, and what was left out of them."""

    taken: tuple[Proposal, ...]
    left_out: tuple[str, ...] = ()  # one sentence each


def read_proposals(document: JsonObject) -> Proposals:
    """Return what a diagnosis proposes; `UsageError` if it is not one."""
    findings, conditions = document.get("findings"), document.get("conditions")
    if not _is_list(findings) or not _is_list(conditions):
        raise UsageError(
            "this is not a diagnosis: it has no findings and conditions",
            hint="make one by `diagnose --json`, with the same --archive",
        )
    taken: list[Proposal] = []
    left: list[str] = []
    for finding in _objects(findings):
        _take_finding(finding, taken, left)
    for condition in _objects(conditions):
        statement = str(condition.get("statement", ""))
        taken += [Proposal(action, statement) for action in _actions(condition.get("steps"))]
    return Proposals(*_mend_first(_distinct(taken), left))


def _take_finding(finding: JsonObject, taken: list[Proposal], left: list[str]) -> None:
    chain = next(_objects(finding.get("chains")), None)
    if chain is None:
        return
    root, confidence = chain.get("root"), chain.get("confidence")
    if not isinstance(root, Mapping) or not isinstance(confidence, int | float):
        return
    symptom = finding.get("symptom")
    what = str(symptom.get("statement", "")) if isinstance(symptom, Mapping) else ""
    cause = f"{root.get('kind')} {root.get('name')}"
    actions = [*_actions(chain.get("steps")), *_actions(chain.get("fix_steps"))]
    if confidence < LEAST_CONFIDENCE:
        if actions:
            left.append(
                f"nothing is planned against {cause}: that it is behind “{what}” is only "
                f"{confidence:.0%} sure"
            )
        return
    why = f"{what}; cause: {cause} ({confidence:.0%} sure)"
    taken += [Proposal(action, why, float(confidence)) for action in actions]


def _mend_first(
    proposals: Sequence[Proposal], left: Sequence[str]
) -> tuple[tuple[Proposal, ...], tuple[str, ...]]:
    """Drop the end of whatever an earlier proposal mends."""
    mended = {_subject(each.action) for each in proposals if each.action.kind == "raise_limit"}
    kept, dropped = [], list(left)
    for each in proposals:
        if each.action.kind in ENDS and _subject(each.action) in mended:
            name = each.action.target.name if each.action.target else ""
            dropped.append(f"{name} is not stopped: raising its limit is tried first")
        else:
            kept.append(each)
    return tuple(kept), tuple(dropped)


def _distinct(proposals: Sequence[Proposal]) -> list[Proposal]:
    """Return each action once, for the first reason given."""
    first: dict[tuple[str, tuple[str, str] | None, str | None], Proposal] = {}
    for each in proposals:
        first.setdefault((each.action.kind, _subject(each.action), each.action.value), each)
    return list(first.values())


def _subject(action: Action) -> tuple[str, str] | None:
    return None if action.target is None else (action.target.kind, action.target.name or "")


def _actions(steps: Json) -> Iterator[Action]:
    for step in _objects(steps):
        written = step.get("action")
        if not isinstance(written, Mapping):
            continue
        try:
            action = parse_action(written)
        except ValueError as error:
            raise UsageError(
                f"an action of this diagnosis cannot be read: {error}",
                hint="it may be of a later Nodescope",
            ) from error
        if action.kind not in _NOT_DONE:
            yield action


def _is_list(value: Json) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _objects(value: Json) -> Iterator[JsonObject]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (each for each in value if isinstance(each, Mapping))


def wish_to_stop(units: Sequence[str], containers: Sequence[str]) -> Proposals:
    """Return the proposals to stop units and containers, on a person's word."""
    why = "asked for on the command line"
    actions = [Action("stop_unit", Target("unit", _unit_name(name))) for name in units]
    actions += [Action("stop_container", Target("container", name)) for name in containers]
    return Proposals(tuple(Proposal(action, why) for action in actions))


def _unit_name(name: str) -> str:
    """Return the full name of a unit; as for systemctl, one without a suffix is a service."""
    return name if "." in name else f"{name}.service"
