"""The chains of one incident while they are followed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nodescope.diagnosis.finding import Absence, Link, Missing, RuledOut
from nodescope.diagnosis.rules.mechanism import Mechanism
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.records.view import View


@dataclass(slots=True)
class Story:
    """The chains of one incident, as far as they have been followed."""

    links: list[Link] = field(default_factory=list)
    held: PeggedCore | None = None
    comm: str | None = None
    pid: int | None = None  # of the task, where a message names it
    mechanism: Mechanism | None = None
    missing: list[Missing] = field(default_factory=list)
    ruled_out: list[RuledOut] = field(default_factory=list)
    p: float | None = None
    compared: bool = True  # with the time before: that is not done for every incident

    def add_harmed(self, link: Link) -> None:
        """Add who suffers from what was reported: before the report, after a job that failed."""
        jobs = sum(each.kind == "job" for each in self.links)
        self.links.insert(jobs, replace(link, aside=True))

    def lacks(
        self,
        what: str,
        consequence: str,
        advice: str = "",
        show: View | None = None,
        absent: Absence | None = None,
    ) -> None:
        """Name what is missing, once; `absent` is what the consequence says was not there."""
        if all(each.what != what for each in self.missing):
            self.missing.append(Missing(what, consequence, advice, show, absent))
