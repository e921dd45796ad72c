"""Stacks with counts, but without times, as samples: spread evenly.

Every stack's samples stand at equal distances over the whole span, each stack
at its own phase, so that any second of it shows the mix of the whole. That is
all such a profile can say; it must not look as if it said more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nodescope.exchange.importer import add_events, add_samples, import_event, wall_capture
from nodescope.ingest.parsed import UNKNOWN_CPU, Notes, ParsedNames, ParsedSamples
from nodescope.ingest.sink import Sink
from nodescope.quantities import MINUTE_NS, SECOND_NS, format_duration

MAX_SAMPLES = 2_000_000
MAX_SPAN_NS = 2 * MINUTE_NS
_GOLDEN = 0.6180339887498949


class Counted(NamedTuple):
    """So many samples of a path; numbers of `ParsedNames`."""

    comm: int
    pid: int
    tid: int
    path: int
    samples: int


def span_of(counted: Iterable[Counted]) -> int:
    """Return how long one core at 100 Hz would have needed, two minutes at most."""
    total = sum(each.samples for each in counted)
    return min(max(total * SECOND_NS // 100, SECOND_NS), MAX_SPAN_NS)


def spread(
    counted: Sequence[Counted], names: ParsedNames, from_ns: int, span_ns: int, notes: Notes
) -> ParsedSamples:
    """Samples over `span_ns` from `from_ns` on; more than a limit are thinned, and it is said."""
    counts = np.array([each.samples for each in counted], np.float64)
    total = counts.sum()
    if total > MAX_SAMPLES:
        # Thinned by the running total: no stack gains or loses more than one sample.
        running = np.floor(np.cumsum(counts) * (MAX_SAMPLES / total) + 0.5)
        kept = np.diff(running, prepend=0.0).astype(np.int64)
        notes.remark(
            f"it counts {total:.0f} samples; they were scaled down to {MAX_SAMPLES}, "
            f"{int((kept == 0).sum())} rare stacks are missing"
        )
    else:
        kept = counts.astype(np.int64)
    row = np.repeat(np.arange(len(counted)), kept)
    place = np.arange(len(row)) - np.repeat(np.cumsum(kept) - kept, kept)
    phase = (np.arange(len(counted)) * _GOLDEN) % 1.0
    time_ns = from_ns + ((place + phase[row]) / kept[row] * span_ns).astype(np.int64)
    columns = np.array([each[:4] for each in counted], np.int64).reshape(len(counted), 4)
    comm, pid, tid, path = columns[row].T
    in_kernel = np.array(names.in_kernel, np.int64)[path]
    cpu = np.full(len(row), UNKNOWN_CPU, np.int64)
    return ParsedSamples(names, time_ns, cpu, pid, tid, comm, in_kernel, path)


def add_spread(
    sink: Sink,
    path: Path,
    counted: Sequence[Counted],
    names: ParsedNames,
    notes: Notes,
    *,
    from_ns: int,
    span_ns: int,
    source: str,
) -> None:
    """Hand a whole profile on, and say in it that its times are made up."""
    said = (
        f"imported without times of its own: {sum(each.samples for each in counted)} samples "
        f"spread evenly over {format_duration(span_ns)}"
    )
    notes.remark(said)
    sink.begin(wall_capture(from_ns, source, notes))
    add_events(sink, [import_event(from_ns, path, said)])
    add_samples(sink, spread(counted, names, from_ns, span_ns, notes))
