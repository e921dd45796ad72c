"""What `fix apply` and `fix undo` report while they work, one piece of news at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from nodescope.remedy.plan import PlanStep

StepOutcome = Literal["starting", "applied", "stands", "failed", "refused", "undone", "kept"]


@dataclass(frozen=True, slots=True)
class StepNews:
    """One step began, ended or was found to stand."""

    number: int  # from 1
    step: PlanStep
    outcome: StepOutcome
    note: str = ""


Report = Callable[[StepNews], None]
