"""A condition: something that lasts, and will do harm or already wastes.

Conditions stand beside incidents in a diagnosis: an incident did harm at a time, a
condition has an owner, a severity and a trend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodescope.records.action import Action
from nodescope.records.view import View

Severity = Literal["critical", "warning"]


@dataclass(frozen=True, slots=True)
class ConditionOwner:
    """Whose condition it is: a unit, a container, a pod, a device, a file system, the node."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition."""

    kind: str
    owner: ConditionOwner
    severity: Severity
    since_ns: int | None  # None: since before the recording, or not known
    statement: str
    trend: str  # in words: `growing by 120 an hour`, `steady`; empty if not known
    steps: tuple[Action, ...]
    show: View
    reference: str = ""  # `explains incident 1`, where a chain of a diagnosis leads to it
