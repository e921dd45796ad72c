"""`perf script` text into an archive: above all, where its clock stands on the wall.

perf's times are those of a clock of the machine, most often since its boot. What
places them, the surest first: a time of day beside them (`-F +tod`), the start
in the file's name, the header's `captured on` (`--header`: when `perf record`
ended), and else the time the file was last written, as that of the last sample.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.clock import ClockPair
from nodescope.errors import source_error
from nodescope.exchange.capture_names import parse_capture_name
from nodescope.exchange.import_formats import ImportFormat, Peek, Progress
from nodescope.exchange.importer import (
    add_estimate,
    add_samples,
    detects,
    modified_ns,
    node_of,
    nothing_in,
    report_of,
    whole_blocks,
)
from nodescope.exchange.perf_script.text import looks_like_perf_script, parse_perf_script
from nodescope.exchange.unpacked import compression_of, read_head
from nodescope.ingest.parsed import Notes
from nodescope.ingest.sink import Capture, ImportReport, Sink
from nodescope.quantities import SECOND_NS
from nodescope.wall_time import parse_ctime

_TAIL_BYTES = 1 << 20
_HEAD_BYTES = 1 << 20
_LAST_WRITTEN = "the time the file was last written, as that of the last sample"


def place(path: Path, *, thorough: bool = True) -> tuple[Capture, int] | None:
    """Where the text's clock stands, and its first sample; None if its first MiB has none.

    A packed file's last sample is only found by unpacking all of it, if `thorough`.
    """
    notes = Notes()
    times = _times(read_head(path, _HEAD_BYTES), notes)
    if times is None:
        return None
    first = times[0]
    named = parse_capture_name(path.name)
    node = node_of(notes)
    if named is not None and named.host:
        node.setdefault("name", named.host)
    is_placed = named is not None or "wall" in notes.facts
    told = _seconds(notes.facts.get("time of last sample", ""))
    last = told if told is not None else _last_sample(path, thorough and not is_placed)
    span_ns = None if last is None or last <= first else last - first
    if named is not None and named.span_ns:
        span_ns = named.span_ns
    captured_ns = parse_ctime(notes.facts.get("captured on", ""))
    if "wall" in notes.facts:
        pair = ClockPair(first, first + int(notes.facts["wall"]))
        source = "time of day in the text, as this machine's local time"
    elif named is not None:
        pair, source = ClockPair(first, named.wall_ns), "start in the file's name, as local time"
    else:
        last = first if last is None else last
        if captured_ns is not None:
            pair, source = ClockPair(last, captured_ns), "end of the capture, in the text's header"
        else:
            pair = ClockPair(last, modified_ns(path))
            source = _LAST_WRITTEN
    if pair.wall_ns < 0 or not 0 <= first + pair.offset_ns <= MAX_TIME_NS:
        pair = ClockPair(first, first)
        source = "nothing: perf's own clock was taken as the wall clock"
    return Capture(pair, source, node, span_ns, estimated=source == _LAST_WRITTEN), first


def _times(text: bytes, notes: Notes) -> tuple[int, int] | None:
    """The earliest and the latest sample."""
    batches = [batch.time_ns for batch in parse_perf_script([text], notes) if len(batch)]
    if not batches:
        return None
    return min(int(times.min()) for times in batches), max(int(times.max()) for times in batches)


def _seconds(text: str) -> int | None:
    whole, _, fraction = text.partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= 10):
        return None
    digits = fraction[:9] if fraction.isascii() and fraction.isdigit() else "0"
    return int(whole) * SECOND_NS + int(digits.ljust(9, "0"))


def _last_sample(path: Path, thorough: bool) -> int | None:
    try:
        with path.open("rb") as file:
            packed = compression_of(file.read(8)) is not None
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            tail = file.read(_TAIL_BYTES)
    except OSError as error:
        raise source_error(path, error) from error
    if packed and thorough:
        blocks: deque[bytes] = deque(whole_blocks(path, Notes()), maxlen=2)
        tail = b"".join(blocks)[-_TAIL_BYTES:]
    elif packed:
        return None
    # The text is cut anywhere: what is before the first blank line is no whole sample.
    times = _times(tail.partition(b"\n\n")[2] or tail, Notes())
    return None if times is None else times[1]


def _peek(path: Path) -> Peek:
    placed = place(path, thorough=False)
    if placed is None:
        return Peek()
    capture, first = placed
    name = capture.node.get("name")
    return Peek(None if name is None else str(name), first + capture.clock.offset_ns)


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    notes = Notes()
    placed = place(path)
    if placed is None:
        raise nothing_in(path, "sample with a time", notes)
    capture, last_ns = placed
    sink.begin(capture)
    for samples in parse_perf_script(whole_blocks(path, notes, progress), notes):
        add_samples(sink, samples)
        last_ns = max(last_ns, int(samples.time_ns.max(initial=last_ns)))
    if capture.estimated:
        add_estimate(sink, path, last_ns)
    return report_of(path, FORMAT.name, notes)


FORMAT = ImportFormat(
    "perf script", detects(looks_like_perf_script), _peek, _import, has_sample_times=True
)
