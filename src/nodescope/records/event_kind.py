"""A kind of event: its meaning, its details, and how it is treated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodescope.records.details import Details
from nodescope.records.event_details import NicDetails

Way = Literal["core", "cgroup", "task", "device", "table", "service"]


@dataclass(frozen=True, slots=True)
class Lag:
    """The maximum seconds from the end of a pegged core to the first report, and why."""

    seconds: int
    why: str


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event.

    A kind with a `rank` is a symptom: a diagnosis explains it. The lowest rank of an
    incident names it, as the harm a person was paged for. `way` says where its cause is
    looked for first: at the core, in the cgroup whose limit was reached, at the task, at the
    device, at the users of a table of the kernel, or at the service. `lag` bounds how long
    after a pegged core was free again the event may still be put down to that core.
    A `condition` does no harm by itself yet: it is listed with what lasts, not with what
    happened. `ends` says why nothing explains a symptom that no way leads on from.
    """

    name: str
    help: str
    details: type[Details] = Details
    serious: bool = False
    loud: bool = False
    rank: int | None = None
    lag: Lag | None = None
    way: Way | None = None
    condition: bool = False
    ends: str = ""

    @property
    def of_nic(self) -> bool:
        """Return whether the event is about a network device, by its details."""
        return issubclass(self.details, NicDetails)
