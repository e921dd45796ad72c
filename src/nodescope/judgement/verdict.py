"""A verdict of the audit on one unit or container, with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from nodescope.records.json import Json

UNIT_STATES = "states of units"  # not judged where neither bus nor journal reports
VERDICTS = {
    "looping": "started again and again",
    "hidden_loop": "running, while what it starts fails again and again",
    "failing": "failed, and does not run",
    "never_succeeded": "tried since boot, and never did well",
    "held_back": "wanted, and kept from starting",
    "unused": "runs, and nobody needs it",
    "unasked": "starts on the first boot of the image, and nobody asked for it",
}


class AuditVerdict(Protocol):
    """The parts that every verdict has."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def evidence(self) -> Mapping[str, Json]: ...


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One verdict on one unit."""

    name: str
    verdict: str
    reason: str
    evidence: Mapping[str, Json] = field(default_factory=dict)
    kind: str = "unit"


@dataclass(frozen=True, slots=True)
class Audit:
    """The findings of an audit, and what it could not see."""

    findings: list[AuditVerdict]
    not_observed: tuple[str, ...] = ()  # in words
    unjudged: tuple[str, ...] = ()  # of those, what is there and may be unwell

    @property
    def healthy(self) -> bool | None:
        """Return whether nothing is wrong; None where that is not known."""
        return False if self.findings else None if self.unjudged else True


def sort_findings(findings: Iterable[AuditVerdict]) -> list[AuditVerdict]:
    """The worst first."""
    order = list(VERDICTS)
    return sorted(findings, key=lambda each: (order.index(each.verdict), each.kind, each.name))
