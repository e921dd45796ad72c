"""The parts of a diagnosis: symptoms, chains of links, what was ruled out, what is missing.

A link's strength is a log-likelihood ratio in nats: how much likelier its evidence
is if the link holds than by chance. A chain holds as all of its links together; what
that was worth in the lab is its confidence (`calibration`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from nodescope.diagnosis.rules.calibration import calibrated
from nodescope.judgement.condition import Condition
from nodescope.recording.window import Window
from nodescope.records.action import Action
from nodescope.records.details import DeclaredDetails, Details
from nodescope.records.event import details_as
from nodescope.records.view import View

SURE = 6.0  # nats: nothing of this is surer than 400 to 1
# Of a chain that ends at a place: what is at fault may be in it or behind it, an even bet.
IN_PLACE = 0.5
_PLACES = ("core", "file system")  # where something happened, and never who did it


@dataclass(frozen=True, slots=True)
class Absence:
    """A claim that something was not there: of which table, when, and how much of that was seen."""

    table: str
    window: Window
    observed_ns: int  # of the window; nothing is claimed of the rest


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something that went wrong, as the recording shows it."""

    kind: str
    time_ns: int
    subject: str
    statement: str
    cpu: int | None = None
    from_ns: int | None = None  # where it has a length
    details: Details = field(default_factory=Details)

    def get(self, declared: type[DeclaredDetails]) -> DeclaredDetails:
        """Return the details as a class; empty ones if they are of another."""
        return details_as(self.details, declared)


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a chain, with what shows it."""

    kind: str
    subject: str
    statement: str
    strength: float
    show: View
    refute: str = ""  # what would speak against it
    short: str = ""  # its part of the way in one line; the subject where that says enough
    aside: bool = False  # says more of the root or of who suffers: the chain holds without it
    frame: str = ""  # the function with most samples, for a flame graph to highlight
    absent: Absence | None = None  # what the statement says was not there

    @property
    def probability(self) -> float:
        return 1 / (1 + math.exp(-min(self.strength, SURE)))

    @property
    def odds(self) -> str:
        """Return the strength as people bet: `66 : 1` for the link, `1 : 2` against it."""
        ratio = math.exp(max(-SURE, min(self.strength, SURE)))
        return f"{ratio:.0f} : 1" if ratio >= 1 else f"1 : {1 / ratio:.0f}"


@dataclass(frozen=True, slots=True)
class Root:
    """The end of a chain."""

    kind: str
    name: str

    @property
    def short(self) -> str:
        """Its name as people say it."""
        return f"core {self.name.removeprefix('cpu')}" if self.kind == "core" else self.name

    @property
    def title(self) -> str:
        """Return the root's kind and name."""
        return self.short if self.kind == "core" else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Chain:
    """From the symptom to what is behind it."""

    links: tuple[Link, ...]
    root: Root
    mechanism: str | None = None
    fixes: tuple[Action, ...] = ()
    arithmetic: str | None = None
    meaning: str = ""  # of the mechanism
    check: tuple[View, ...] = ()  # that look for it elsewhere
    steps: tuple[Action, ...] = ()  # what to do about the root, before `fixes`
    share: float = 1.0  # less where others that exclude it are as likely
    reporter: bool = False  # the root is known only as what reported it

    @property
    def is_place(self) -> bool:
        """Return whether the root is where it happened, and not known to be the cause."""
        return self.reporter or self.root.kind in _PLACES

    @property
    def explains(self) -> bool:
        """Return whether the chain goes beyond what was reported."""
        return self.root.kind not in ("event", "job")

    @property
    def support(self) -> float:
        """Return the summed evidence, as if each link were independent of the others."""
        return math.prod(link.probability for link in self.links if not link.aside)

    @property
    def confidence(self) -> float:
        """Return how often chains so well supported named the cause, as the lab has shown.

        It is never surer than the weakest link, nor, where only the place is known, than even.
        """
        weakest = self.weakest.probability if self.links else 1.0
        sure = self.share * min(calibrated(self.support), weakest)
        return IN_PLACE * sure if self.is_place else sure

    @property
    def weakest(self) -> Link:
        """Return the link that the chain would break at first."""
        return min(self.links, key=lambda link: (link.aside, link.strength))


def exclude_each_other(chains: Sequence[Chain]) -> list[Chain]:
    """Explanations of which one at most is true: together they are no surer than sure."""
    together = sum(chain.confidence for chain in chains)
    return [replace(chain, share=min(1.0, 1 / together)) for chain in chains]


@dataclass(frozen=True, slots=True)
class RuledOut:
    """Something that was there and is not the cause."""

    name: str
    statement: str
    show: View | None = None  # `suspects` gives it
    absent: Absence | None = None  # what the statement says was not there


@dataclass(frozen=True, slots=True)
class Missing:
    """A thing that was not recorded or not followed, and what to do about it."""

    what: str
    consequence: str
    advice: str = ""  # in words
    show: View | None = None  # where to look
    absent: Absence | None = None  # what the statement says was not there


@dataclass(slots=True)
class Finding:
    """One thing that went wrong, with what explains it, best first."""

    symptom: Symptom
    chains: list[Chain]
    also: list[Symptom] = field(default_factory=list)  # of the same incident
    ruled_out: list[RuledOut] = field(default_factory=list)
    hidden: str | None = None  # what the averages did not show
    repeats: list[int] = field(default_factory=list)  # when the same happened again
    ends: Missing | None = None  # why there is no cause
    at_least: bool = False  # others may be among what was lost of the kernel log
    unfollowed: int = 0  # incidents with such a symptom of which nothing more is known
    recurring: list[str] = field(default_factory=list)  # what all of these times share
    p_values: list[float] = field(default_factory=list)  # of the task against its baseline


@dataclass(slots=True)
class Diagnosis:
    """Incidents (`findings`), conditions, and what is missing."""

    from_ns: int
    to_ns: int
    findings: list[Finding] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)  # worst first
    archive: Path | None = None  # the recording; None is the one that commands read by default
    boot: str | None = None  # id of the boot that the last part was recorded in
    blind: bool = False  # something could not be seen without which silence means nothing

    @property
    def silent(self) -> bool:
        """Return whether there is neither an incident nor a condition."""
        return not self.findings and not self.conditions

    @property
    def healthy(self) -> bool | None:
        """Return whether nothing is wrong; None if nothing was found and that means nothing."""
        return None if self.silent and self.blind else self.silent
