"""What an audit finds: one verdict on one unit or container, with the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Protocol

from nodescope.lazy_dataclass import dataclass
from nodescope.records.json import Json

VERDICTS = {
    "looping": "started again and again",
    "hidden_loop": "running, while what it starts fails again and again",
    "failing": "failed, and does not run",
    "never_succeeded": "tried since boot, and never did well",
    "held_back": "wanted, and kept from starting",
    "unused": "runs, and nobody needs it",
}


class AuditVerdict(Protocol):
    """What every finding has, whoever made it."""

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


def sort_findings(findings: Iterable[AuditVerdict]) -> list[AuditVerdict]:
    """The worst first."""
    order = list(VERDICTS)
    return sorted(findings, key=lambda each: (order.index(each.verdict), each.kind, each.name))
