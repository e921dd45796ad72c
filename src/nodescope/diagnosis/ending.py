"""Where a way ends: the root, the mechanism by name, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from nodescope.diagnosis.finding import Root
from nodescope.records.action import Action


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a chain that leads to no core."""

    root: Root
    mechanism: str | None = None
    meaning: str = ""
    steps: tuple[Action, ...] = ()
    reporter: bool = False  # the root is known only as what reported the trouble
