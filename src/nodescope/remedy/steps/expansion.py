"""The result of turning one proposed action into steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.records.action import Target
from nodescope.remedy.plan import PlanStep, Refused


@dataclass(frozen=True, slots=True)
class Expansion:
    """Steps, what is refused, and what a plan cannot do about the proposal."""

    steps: tuple[PlanStep, ...] = ()
    refused: tuple[Refused, ...] = ()
    cannot: tuple[str, ...] = ()


def refuse(target: Target, reason: str, override: str = "") -> Expansion:
    """Return an expansion that only refuses."""
    return Expansion(refused=(Refused(target, reason, override),))


def join(parts: Iterable[Expansion]) -> Expansion:
    """Return several expansions as one, in their order; a step is taken once per target."""
    listed = list(parts)
    steps: dict[tuple[str, Target, tuple[tuple[str, str], ...]], PlanStep] = {}
    for step in (each for part in listed for each in part.steps):
        steps.setdefault((step.kind, step.target, tuple(sorted(step.arguments.items()))), step)
    return Expansion(
        tuple(steps.values()),
        tuple(dict.fromkeys(each for part in listed for each in part.refused)),
        tuple(dict.fromkeys(each for part in listed for each in part.cannot)),
    )
