"""The formats a recording can be exported to: names, file endings, media types and writers.

The command line and the page take this list; a new format is one entry here and one module
beside it. Nothing heavy is imported before something is written: `nodescope --help` lists
the formats, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.exchange.export.speedscope import Split
    from nodescope.exchange.export.stacks import Parts
    from nodescope.recording.part import Part


@dataclass(frozen=True, slots=True)
class ExportedWindow:
    """The exported samples of a window, and where they come from."""

    node: str
    filter: str  # in words; empty is none
    from_ns: int
    to_ns: int
    parts: Parts
    segments: Iterable[Part]  # of the window: core times and events
    split: Split = "none"

    @property
    def title(self) -> str:
        """Return which node and when, and of what."""
        span = f"{self.node}, {format_moment(self.from_ns)} to {format_moment(self.to_ns)}"
        return f"{span}, {self.filter}" if self.filter else span

    @property
    def span(self) -> dict[str, object]:
        """Return from when to when it goes, for a document."""
        return describe_span(self.from_ns, self.to_ns)


def describe_span(from_ns: int, to_ns: int) -> dict[str, object]:
    """Return a span of wall time as documents have it: as text and in nanoseconds."""
    return {
        "from": format_moment(from_ns),
        "to": format_moment(to_ns),
        "from_ns": from_ns,
        "to_ns": to_ns,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFormat:
    """A format, as it is asked for and as its files are called."""

    name: str
    aliases: tuple[str, ...] = ()
    meaning: str
    suffix: str
    media_type: str

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name it is asked for by."""
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleFormat(ExportFormat):
    """A format that holds the samples of a window."""

    write: Callable[[ExportedWindow, IO[bytes]], int]  # returns how many samples it wrote


# -- writers -------------------------------------------------------------------


def _write_pprof(window: ExportedWindow, file: IO[bytes]) -> int:
    from nodescope.exchange.export.pprof import write_pprof

    comment = f"nodescope: {window.title}"
    return write_pprof(window.parts, file, window.from_ns, window.to_ns, comment)


def _write_folded(window: ExportedWindow, file: IO[bytes]) -> int:
    from nodescope.exchange.export.folded import write_folded

    return write_folded(window.parts, file)


def _write_speedscope(window: ExportedWindow, file: IO[bytes]) -> int:
    from nodescope.exchange.export.speedscope import write_speedscope

    return write_speedscope(window.parts, file, window.title, window.split)


def _write_chrome(window: ExportedWindow, file: IO[bytes]) -> int:
    from nodescope.exchange.export.chrome import write_chrome

    about = {"node": window.node, "filter": window.filter, **window.span}
    return write_chrome(window.parts, window.segments, file, window.from_ns, window.to_ns, about)


def _write_firefox(window: ExportedWindow, file: IO[bytes]) -> int:
    from nodescope.exchange.export.firefox import write_firefox

    return write_firefox(window.parts, file, window.from_ns, window.title)


# -- the list ------------------------------------------------------------------

SAMPLE_FORMATS = (
    SampleFormat(
        name="pprof",
        meaning="profile.proto, gzipped: `go tool pprof`, Grafana, Parca",
        suffix="pb.gz",
        media_type="application/octet-stream",
        write=_write_pprof,
    ),
    SampleFormat(
        name="folded",
        meaning="one line per stack: flamegraph.pl, inferno",
        suffix="folded.txt",
        media_type="text/plain; charset=utf-8",
        write=_write_folded,
    ),
    SampleFormat(
        name="speedscope",
        meaning="speedscope.app",
        suffix="speedscope.json",
        media_type="application/json",
        write=_write_speedscope,
    ),
    SampleFormat(
        name="perfetto",
        aliases=("chrome",),
        meaning="Chrome's trace format: ui.perfetto.dev, chrome://tracing",
        suffix="trace.json",
        media_type="application/json",
        write=_write_chrome,
    ),
    SampleFormat(
        name="firefox",
        meaning="profiler.firefox.com",
        suffix="firefox.json",
        media_type="application/json",
        write=_write_firefox,
    ),
)
# Rows of a view or a table: written by `tables`.
ROW_FORMATS = (
    ExportFormat(
        name="csv",
        meaning="rows of a view or a table; see --view and --table",
        suffix="csv",
        media_type="text/csv",
    ),
    ExportFormat(
        name="parquet",
        meaning="rows of a view or a table; see --view and --table",
        suffix="parquet",
        media_type="application/vnd.apache.parquet",
    ),
)
BUNDLE = ExportFormat(
    name="bundle",
    meaning="everything of the window in one file, for every command here: --archive FILE",
    suffix="nodescope",
    media_type="application/octet-stream",
)
EXPORT_FORMATS: tuple[ExportFormat, ...] = (*SAMPLE_FORMATS, *ROW_FORMATS, BUNDLE)


def find_export_format(name: str) -> ExportFormat | None:
    """Return the format of that name or alias; None if there is none."""
    return next((each for each in EXPORT_FORMATS if name in each.names), None)
