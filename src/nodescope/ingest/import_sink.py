"""The rows of one file as the segments of an archive.

Segments are cut every two minutes of the capture's own clock and carry the
pair that places it on the wall clock. Retention takes nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodescope.archive.interning import Interner
from nodescope.archive.layout import MAX_TIME_NS
from nodescope.archive.retention import Retention
from nodescope.archive.schema import ColumnData
from nodescope.archive.writer import ArchiveWriter
from nodescope.arrays import I64, Bool
from nodescope.errors import UsageError
from nodescope.ingest.samples import SampleRows, intern_samples
from nodescope.ingest.sink import Capture, ImportNames, ImportReport
from nodescope.quantities import SECOND_NS
from nodescope.records.columns import columns_of
from nodescope.records.node_tables import SourceCostRow
from nodescope.records.recorder_tables import Gap, HeartbeatRow

SEGMENT_NS = 120 * SECOND_NS
GAP_NS = 100_000_000  # between captures; less is how long `perf record` takes to start
KEEP = Retention(age_ns=1 << 62, size_bytes=1 << 62)
# A file whose times are nonsense must not become a segment per row.
_LEAST_ROWS = 1000
_FLUSH_ROWS = 250_000
_TIME_COLUMNS = {
    "cores": "time_ns",
    "events": "time_ns",
    "gaps": "from_ns",
    "call_traces": "time_ns",
}


class _CaptureClock:
    """The clock of a capture, standing where the import has come to."""

    def __init__(self, capture: Capture) -> None:
        self.offset_ns = capture.clock.offset_ns
        self.now_ns = capture.clock.monotonic_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns + self.offset_ns


class _StagingWriter(ArchiveWriter):
    """A writer whose segments continue the numbers of another archive."""

    def number_after(self, sequence: int) -> None:
        self._sequence = sequence


class ImportSink:
    """Cuts the rows of one file into segments, and counts what the report tells."""

    def __init__(self, root: Path, boot_id: str, sequence: int, end_ns: int | None) -> None:
        self.node: Mapping[str, object] = {}
        self._root = root
        self._boot_id = boot_id
        self._first_sequence = sequence
        self._previous_end_ns = end_ns
        self._capture: Capture | None = None
        self._writer: _StagingWriter | None = None
        self._interner: Interner | None = None
        self._names: ImportNames | None = None
        self._paths = _PathCounts()
        self._segment_ns = SEGMENT_NS
        self._segment_end_ns: int | None = None
        self._in_segment = 0
        self._unflushed = 0
        self._first_ns = MAX_TIME_NS
        self._last_ns = -1
        self._rows: dict[str, int] = {}
        self._observers: set[str] = set()
        self._lost = self._idle = self._impossible = 0
        self._frames = np.zeros(4, np.int64)

    # -- what importers call -------------------------------------------------

    def begin(self, capture: Capture) -> None:
        """Say where the file's times lie; once, before any row."""
        if self._capture is not None:
            raise UsageError("a capture begins once")
        self._capture = capture
        self.node = capture.node
        if capture.span_ns:
            parts = max(1, round(capture.span_ns / SEGMENT_NS))
            self._segment_ns = capture.span_ns // parts + SECOND_NS
        self._clock = _CaptureClock(capture)
        writer = _StagingWriter.open(
            self._root,
            node={"boot_id": self._boot_id},
            clock=self._clock,
            tick_ns=capture.tick_ns,
            retention=KEEP,
        )
        assert isinstance(writer, _StagingWriter)
        self._writer = writer
        writer.number_after(self._first_sequence)

    def samples(self, rows: SampleRows, names: ImportNames) -> None:
        """Add samples."""
        possible = (rows.time_ns >= 0) & (rows.time_ns <= MAX_TIME_NS)
        if not possible.all():
            self._impossible += int(len(possible) - np.count_nonzero(possible))
            rows = _take_samples(rows, possible)
        if not len(rows.time_ns):
            return
        if self._names is not None and self._names.paths is not names.paths:
            self._seal()
            self._paths = _PathCounts()
        self._names = names
        for chosen in self._segments_of(rows.time_ns, "samples"):
            self._append_samples(rows if chosen.all() else _take_samples(rows, chosen), names)

    def append(self, table: str, columns: ColumnData) -> None:
        """Add rows of a table that an import may have, about in the order of their time."""
        times = np.asarray(columns[_TIME_COLUMNS[table]], np.int64)
        possible = (times >= 0) & (times <= MAX_TIME_NS)
        if not possible.all():
            self._impossible += int(len(possible) - np.count_nonzero(possible))
            columns, times = _take(columns, possible), times[possible]
        if not len(times):
            return
        for chosen in self._segments_of(times, table):
            self._add(table, columns if chosen.all() else _take(columns, chosen), int(chosen.sum()))

    def lost(self, records: int) -> None:
        """Count records that the capture says it lost."""
        self._lost += records

    def observed(self, observer: str) -> None:
        """Say that the file shows what an observer would have: its silence counts, too."""
        self._observers.add(observer)

    # -- the end -------------------------------------------------------------

    def close(self) -> None:
        """Seal what there is."""
        self._names = None
        if self._writer is not None:
            try:
                self._seal()
            finally:
                self._writer.close()
                self._writer = None

    def complete(self, report: ImportReport) -> None:
        """Fill in what the sink has counted."""
        report.rows = {**report.rows, **self._rows}
        report.lost += self._lost
        report.idle += self._idle
        report.malformed += self._impossible
        report.gaps = self._rows.get("gaps", 0)
        _, unresolved_user, kernel, unresolved_kernel = self._frames.tolist()
        report.frames += int(self._frames.sum())
        report.kernel_frames += kernel + unresolved_kernel
        report.unresolved_user += unresolved_user
        report.unresolved_kernel += unresolved_kernel
        if self._capture is not None:
            report.clock_source = report.clock_source or self._capture.clock_source
            name = self._capture.node.get("name")
            report.node = report.node or (str(name) if name else None)
            if self._last_ns >= 0:
                offset = self._capture.clock.offset_ns
                report.wall_from_ns = self._first_ns + offset
                report.wall_to_ns = self._last_ns + offset

    # -- segments ------------------------------------------------------------

    def _segments_of(self, times: I64, table: str) -> Iterator[Bool]:
        """Which rows go into the present segment; and, after it, into the next, until all are."""
        if self._writer is None:
            raise UsageError("rows before the capture has begun")
        rest = np.ones(len(times), bool)
        while rest.any():
            first = int(times[rest].min())
            if self._segment_end_ns is None:
                self._start(first, table)
            elif first >= self._segment_end_ns and self._in_segment >= _LEAST_ROWS:
                self._seal()
                self._start(first, table)
            assert self._segment_end_ns is not None
            chosen = rest & (times < self._segment_end_ns)
            short = _LEAST_ROWS - self._in_segment - int(np.count_nonzero(chosen))
            if short > 0:  # too few rows for a segment: it takes later ones too
                later = np.flatnonzero(rest & ~chosen)
                chosen[later[np.argsort(times[later], kind="stable")[:short]]] = True
            self._in_segment += int(chosen.sum())
            self._first_ns = min(self._first_ns, int(times[chosen].min()))
            self._last_ns = max(self._last_ns, int(times[chosen].max()))
            yield chosen
            rest = rest & ~chosen

    def _start(self, first_ns: int, table: str) -> None:
        """A new segment, from that time on."""
        assert self._capture is not None
        self._segment_end_ns = first_ns + self._segment_ns
        self._clock.now_ns = first_ns  # the segment is named by it when it is first flushed
        self._heartbeat(first_ns)
        if self._previous_end_ns is not None and table == "samples":
            start_ns = self._previous_end_ns - self._capture.clock.offset_ns
            if first_ns - start_ns > GAP_NS:
                gap = Gap(
                    from_ns=max(0, start_ns),
                    to_ns=first_ns,
                    source="samples",
                    reason="between two captures",
                )
                self._add("gaps", columns_of([gap]), 1)
            self._previous_end_ns = None

    def _seal(self) -> None:
        if self._writer is None or self._segment_end_ns is None:
            return
        time_ns = max(self._last_ns, self._clock.now_ns)
        self._heartbeat(time_ns)
        asked = [SourceCostRow(time_ns=time_ns, source=name) for name in sorted(self._observers)]
        if asked:  # what coverage is known by
            self._writer.append("source_costs", columns_of(asked))
        self._interner = None
        self._writer.seal_segment()
        self._segment_end_ns = None
        self._in_segment = self._unflushed = 0

    def _heartbeat(self, time_ns: int) -> None:
        assert self._writer is not None
        assert self._capture is not None
        samples = self._rows.get("samples")
        heartbeat = HeartbeatRow(
            time_ns=time_ns,
            wall_ns=time_ns + self._clock.offset_ns,
            samples=samples,
            lost=None if samples is None else self._lost,
            frequency_hz=self._capture.frequency_hz,
        )
        self._writer.append("heartbeats", columns_of([heartbeat]))

    def _add(self, table: str, columns: ColumnData, count: int) -> None:
        assert self._writer is not None
        self._writer.append(table, columns)
        self._rows[table] = self._rows.get(table, 0) + count
        self._unflushed += count
        if self._unflushed >= _FLUSH_ROWS:
            self._writer.flush()
            self._unflushed = 0

    def _append_samples(self, rows: SampleRows, names: ImportNames) -> None:
        assert self._writer is not None
        assert self._capture is not None
        if self._interner is None:
            self._interner = Interner(names.frames, names.paths, names.comms)
        new = intern_samples(self._interner, rows, self._capture.tick_ns)
        samples = new.pop("samples")
        for table, columns in new.items():
            self._writer.append(table, columns)
        self._add("samples", samples, len(rows.time_ns))
        self._idle += int(np.count_nonzero(rows.pid == 0))
        self._frames += self._paths.count(names, rows.user, rows.kernel)


class _PathCounts:
    """How many frames each path has: user and kernel, with a name and without."""

    def __init__(self) -> None:
        self._counts = np.zeros((0, 4), np.int32)
        self._flags = np.zeros(0, np.int64)

    def count(self, names: ImportNames, *numbers: I64) -> I64:
        """Frames of all samples, as (user, user unnamed, kernel, kernel unnamed)."""
        new_frames = names.frames[len(self._flags) :]
        flags = [2 * kernel + name.startswith(("+0x", "[")) for _, name, kernel in new_frames]
        self._flags = np.concatenate((self._flags, np.array(flags, np.int64)))
        known = len(self._counts)
        if len(names.paths) > known:
            lengths = names.paths.lengths(known)
            flags_of = self._flags[names.paths.values(known)]
            owner = np.repeat(np.arange(0, 4 * len(lengths), 4), lengths)
            counts = np.bincount(owner + flags_of, minlength=4 * len(lengths))
            more = counts.astype(np.int32).reshape(-1, 4)
            self._counts = np.concatenate((self._counts, more))
        total = np.zeros(4, np.int64)
        for number in numbers:
            total += self._counts.take(number, axis=0).sum(axis=0, dtype=np.int64)
        return total


def _take_samples(rows: SampleRows, chosen: Bool) -> SampleRows:
    cgroup = rows.cgroup
    return SampleRows(
        rows.time_ns[chosen],
        rows.cpu[chosen],
        rows.pid[chosen],
        rows.tid[chosen],
        rows.comm[chosen],
        rows.kernel_mode[chosen],
        rows.user[chosen],
        rows.kernel[chosen],
        None if cgroup is None else (cgroup[0][chosen], cgroup[1]),
    )


def _take(columns: ColumnData, chosen: Bool) -> ColumnData:
    taken: dict[str, NDArray[Any] | Sequence[object]] = {}
    for name, values in columns.items():
        if isinstance(values, tuple):
            taken[name] = (values[0][chosen], values[1])
        elif isinstance(values, np.ndarray):
            taken[name] = values[chosen]
        else:
            taken[name] = [one for one, wanted in zip(values, chosen, strict=True) if wanted]
    return taken
