"""The data that an importer passes on, and the sink that takes it.

Samples come as columns of numbers into lists of names, other rows as columns of a
table. The sink cuts them into segments and puts them into the archive as a whole or
not at all; its report says what became of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nodescope.archive.schema import ColumnData
from nodescope.clock import ClockPair
from nodescope.ingest.samples import SampleRows
from nodescope.numbering import Sequences


@dataclass(frozen=True, slots=True)
class Capture:
    """The facts of a file that an importer reports before its first row."""

    clock: ClockPair  # one moment on the file's own clock and on the wall; equal if it has only one
    clock_source: str  # how that pair is known, for the report
    node: Mapping[str, object] = field(default_factory=dict)  # `name`, `kernel`, `cpus`, … if known
    span_ns: int | None = None  # how long it lasts, if known ahead: segments are cut evenly
    frequency_hz: int | None = None  # samples per second and core, if known
    tick_ns: int = 1000
    estimated: bool = False  # the clock pair is a guess: the file does not say when it was made


@dataclass(frozen=True, slots=True)
class ImportNames:
    """The meaning of the numbers in samples; the lists may grow, never change.

    `frames` are (module, name, kernel), `paths` are outermost first, and path 0 is
    the empty one. Frame 0 is what a sample without any frame shows.
    """

    frames: Sequence[tuple[str, str, bool]]
    paths: Sequences
    comms: Sequence[str]


class Sink(Protocol):
    """Where an importer's rows go."""

    def begin(self, capture: Capture) -> None:
        """Say where the file's times lie; once, before any row."""

    def samples(self, rows: SampleRows, names: ImportNames) -> None:
        """Add samples; give the same `names` (or one with longer lists) each time.

        Another object with other lists starts a new segment, so that an
        importer may forget its numbering when it has become large.
        """

    def append(self, table: str, columns: ColumnData) -> None:
        """Add rows of a table, about in the order of their time."""

    def lost(self, records: int) -> None:
        """Count records that the capture says it lost."""

    def observed(self, observer: str) -> None:
        """Say that the file shows what an observer of the recorder would have, for its span."""


@dataclass(slots=True)
class ImportReport:
    """The outcome of importing a file. Counts that the sink knows are filled in by the sink."""

    path: str
    format: str
    node: str | None = None
    wall_from_ns: int | None = None
    wall_to_ns: int | None = None
    clock_source: str = ""
    rows: dict[str, int] = field(default_factory=dict)  # by table
    lost: int = 0
    throttled: int = 0
    frames: int = 0  # over all samples
    unresolved_kernel: int = 0
    unresolved_user: int = 0
    kernel_frames: int = 0
    truncated_stacks: int = 0
    out_of_order: int = 0
    idle: int = 0  # samples of pid 0
    malformed: int = 0  # records or lines passed over
    gaps: int = 0
    notes: list[str] = field(default_factory=list)  # for a person: what is not as one may expect
    stopped_at: int | None = None  # offset up to which the file is whole, if not to its end
    stopped_why: str = ""
    already_imported: bool = False

    @property
    def samples(self) -> int:
        return self.rows.get("samples", 0)
