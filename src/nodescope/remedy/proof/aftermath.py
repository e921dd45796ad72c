"""The node after a plan was applied, as far as it was observed: facts, without a verdict."""

from __future__ import annotations

from dataclasses import dataclass

SETTLE_S = 2.0  # freed cgroups are released, and the last end of a stopped unit is reported


@dataclass(frozen=True, slots=True)
class Aftermath:
    """One measure of a baseline, after the plan."""

    measure: str
    subject: str
    count: float | None  # None: not observed at all
    observed_s: float
    unbroken_s: float  # the longest time without a hole in the observation
    readings: tuple[tuple[float, float], ...] = ()  # of a level: seconds since applied, value
    lost: str = ""  # why the observation ended early or has holes; empty: it has none


@dataclass(frozen=True, slots=True)
class SourceState:
    """A unit or container that the plan stopped, as it was last seen."""

    kind: str
    name: str
    at_rest: bool | None  # nothing will start it by itself; None: not seen
    seen: str  # its state in words, or why it was not seen


@dataclass(frozen=True, slots=True)
class Afterwards:
    """Everything that was observed from the plan on."""

    applied_ns: int
    until_ns: int
    measures: tuple[Aftermath, ...]
    sources: tuple[SourceState, ...] = ()
    rebooted: bool = False
    undone: str = ""  # why the plan is not in force; empty: it is
    zombies_before: float | None = None  # counted last before the first step
    lost: str = ""  # why nothing more is seen; empty: the observation goes on
    # Units and containers that ran at every look: nobody waits to start them again.
    running: frozenset[str] = frozenset()

    @property
    def elapsed_s(self) -> float:
        """Return the time since the plan was applied."""
        return (self.until_ns - self.applied_ns) / 1e9
