"""A view: what is looked at, when, and of which samples, units or rows; pure data.

A link of a diagnosis carries one, a hint names one, the command line and the HTTP API
parse into one. `view_forms` renders it as a command, as a place of the page and as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from nodescope.quantities import SECOND_NS
from nodescope.records.sample_filter import SampleFilter

ViewName = Literal[
    "audit", "compare", "cores", "diagnose", "doctor", "events", "fix", "flame", "heatmap",
    "network", "quality", "status", "table", "top", "zombies",
]  # fmt: skip
PagePart = Literal["timeline", "events", "heatmap", "flame", "facts"]
ALL_SAMPLES = SampleFilter()


@dataclass(frozen=True, slots=True)
class Span:
    """From one wall time to another; None is where the recording begins or ends."""

    from_ns: int | None = None
    to_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A wall time, and so much before and after it; None is what the view has by default."""

    at_ns: int
    margin_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Last:
    """The end of the recording, this much of it."""

    length_ns: int


When = Span | Moment | Last


@dataclass(frozen=True, slots=True)
class ViewKind:
    """The declaration of one kind of view."""

    command: tuple[str, ...]
    takes: frozenset[str]  # fields of a `View` that mean something to it
    part: PagePart = "timeline"  # of the page, that shows it
    machine: Literal["never", "without a time", "always"] = "never"  # instead of a recording
    moment: bool = False  # of a time it takes a moment alone
    cores: bool = False  # of a filter it takes cores alone
    now: frozenset[str] = frozenset()  # fields that need the machine as it is
    then: frozenset[str] = frozenset()  # fields that need a time


def _kind(command: str, takes: str, part: PagePart = "timeline") -> ViewKind:
    return ViewKind(tuple(command.split()), frozenset(takes.split()), part)


VIEW_KINDS: dict[ViewName, ViewKind] = {
    "cores": ViewKind(("cores",), frozenset({"when", "filter", "by"}), cores=True),
    "events": _kind("events", "when kinds serious", "events"),
    "heatmap": _kind("heatmap", "when filter", "heatmap"),
    "flame": _kind("flame", "when filter", "flame"),
    "top": _kind("top", "when filter by", "flame"),
    "compare": _kind("compare", "when filter", "flame"),
    "network": _kind("network", "when", "facts"),
    "quality": _kind("quality", "when"),
    "diagnose": _kind("diagnose", "when"),
    "fix": _kind("fix plan", ""),
    "table": _kind("export csv --output -", "when table where"),
    "status": _kind("status", ""),
    "zombies": ViewKind(
        ("zombies",), frozenset({"when", "parents", "files", "watch_ns"}), "facts",
        "without a time", moment=True, now=frozenset({"files", "watch_ns"}),
    ),
    "audit": ViewKind(
        ("audit",), frozenset({"when", "unit"}), "facts",
        "without a time", moment=True, then=frozenset({"unit"}),
    ),
    "doctor": ViewKind(("doctor",), frozenset(), machine="always"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """One look at a recording, or at the machine as it is."""

    what: ViewName
    when: When | None = None  # None: the whole recording, or the machine now
    filter: SampleFilter = ALL_SAMPLES
    by: str | None = None  # top: what is ranked; cores: which state
    kinds: tuple[str, ...] = ()  # of events
    serious: bool = False
    unit: str | None = None
    table: str | None = None
    where: tuple[tuple[str, str], ...] = ()  # columns of the table, and their values
    parents: bool = False  # every parent of zombies, not the first few
    files: bool = False  # the files that pin zombies
    watch_ns: int | None = None  # how long to listen for who makes zombies

    def __post_init__(self) -> None:
        kind = VIEW_KINDS[self.what]
        given = {each.name for each in fields(self)[1:] if getattr(self, each.name) != each.default}
        if wrong := sorted(given - kind.takes):
            raise ValueError(f"the view {self.what} takes no {wrong[0]}")
        if kind.moment and self.when is not None and self.when != Moment(self._at_ns()):
            raise ValueError(f"the view {self.what} takes a moment, and no window around it")
        if kind.cores and self.filter != SampleFilter(cpus=self.filter.cpus):
            raise ValueError(f"the view {self.what} takes no filter but cores")
        if wrong := sorted(given & (kind.then if self.when is None else kind.now)):
            time = "needs a time for" if self.when is None else "of a time takes no"
            raise ValueError(f"the view {self.what} {time} {wrong[0]}")
        if (self.what == "table") != (self.table is not None):
            raise ValueError("the view table needs the name of one")

    def _at_ns(self) -> int:
        return self.when.at_ns if isinstance(self.when, Moment) else 0

    @property
    def kind(self) -> ViewKind:
        """Return the declaration of this kind of view."""
        return VIEW_KINDS[self.what]

    @property
    def of_machine(self) -> bool:
        """Return whether it shows the machine as it is, and not a recording."""
        machine = self.kind.machine
        return machine == "always" or (machine == "without a time" and self.when is None)


def around(time_ns: int, seconds: int = 15) -> Moment:
    """Return the time around a moment."""
    return Moment(time_ns, seconds * SECOND_NS)
