"""A scenario: a real fault, its healthy twin, and the truth about it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.lab.ground import Ground
from nodescope.lab.guest import Guest
from nodescope.lab.processes import Process
from nodescope.lab.variation import Variation
from nodescope.records.json import Json

HELD_LEAST = 0.85
# What nobody may be told of where no zombies are.
ZOMBIE_WALKS = ("memcg_walk_by_read", "memcg_walk_by_reclaim", "zombie memory cgroups")


@dataclass(frozen=True, slots=True)
class LastingTruth:
    """A condition that a diagnosis must list."""

    kinds: tuple[str, ...]  # any of these
    owner_kind: str
    owner: str


@dataclass(frozen=True, slots=True)
class Truth:
    """The conclusions that a diagnosis of the recording must reach, and those it must not.

    `finding` is about incidents: what lasts is in `conditions`, beside an incident or alone.
    """

    scenario: str
    healthy: bool
    finding: bool  # whether there is anything to find
    roots: tuple[str, ...] = ()  # names the first chain may end at; empty: any but `never`
    root_kinds: tuple[str, ...] = ()  # kinds of that root; empty: any
    symptoms: tuple[str, ...] = ()  # kinds of events, of which the incident has one; empty: any
    mechanisms: tuple[str, ...] = ()
    conditions: tuple[LastingTruth, ...] = ()
    never: tuple[str, ...] = ()  # names that must not be blamed
    well: tuple[str, ...] = ()  # those that have no condition either
    cpu: int | None = None
    simulated: tuple[str, ...] = ()  # the parts that are not real
    held: float | None = None  # share of its time that the lab had the core in the kernel
    facts: Mapping[str, Json] = field(default_factory=dict)

    @property
    def happened(self) -> bool:
        """Return whether the fault came about: other work may have taken the core."""
        return self.held is None or self.held >= HELD_LEAST


@dataclass(slots=True)
class ScenarioRun:
    """One run of a scenario, while it lasts."""

    ground: Ground
    strength: int
    healthy: bool
    archive: str
    say: Callable[[str], None]
    variation: Variation = field(default_factory=lambda: Variation(0))
    recorder: list[str] = field(default_factory=list)  # options for the recorder
    recorder_in: list[str] = field(default_factory=list)  # a command that runs it elsewhere
    names: dict[str, str] = field(default_factory=dict)  # chosen in preparing
    innocent: tuple[str, ...] = ()  # units that are well
    paths: dict[str, Path] = field(default_factory=dict)  # made in preparing, for acting
    guest: Guest | None = None  # started in preparing
    holder: subprocess.Popen[bytes] | None = None  # of a core, started in preparing
    lasting: dict[str, Process] = field(default_factory=dict)  # must live until it is over


@dataclass(frozen=True, slots=True)
class Scenario:
    """Two steps: before the recorder starts, and while it runs."""

    name: str
    help: str
    strength: int
    most: int  # a strength beyond this could hurt
    unit: str  # what strength counts
    prepare: Callable[[ScenarioRun], None]
    act: Callable[[ScenarioRun], Truth]
    require: Callable[[], None] = lambda: None  # raises where the machine lacks what it takes
    decoy: bool = False
    least: int = 1  # a strength below this would not be the scenario
    before_s: float = 0.0  # it must be recorded for so long before it acts
    slow: bool = False  # a run takes half a minute or more
