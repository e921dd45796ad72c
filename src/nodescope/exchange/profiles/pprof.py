"""pprof profiles: gzip'd `profile.proto` (github.com/google/pprof/proto).

What counts is how often a stack was seen: the sample type `samples/count`, else
CPU time divided by the sampling period. A profile of allocations has no such
thing and is refused. When each sample was taken is not in it, only when the
profile started and how long it lasted; so they are spread evenly over that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.errors import MalformedSource
from nodescope.exchange.import_formats import ImportFormat, Peek, Progress
from nodescope.exchange.importer import (
    detects,
    modified_ns,
    nothing_in,
    report_of,
    whole_blocks,
)
from nodescope.exchange.perf_script.frames import make_frame
from nodescope.exchange.profiles.spread import Counted, add_spread, span_of
from nodescope.ingest.clean_text import clean
from nodescope.ingest.parsed import (
    UNKNOWN,
    UNKNOWN_PID,
    Notes,
    ParsedFrame,
    ParsedNames,
    collapse_unknown,
)
from nodescope.ingest.sink import ImportReport, Sink
from nodescope.quantities import DAY_NS
from nodescope.wire import protobuf

MAX_PROFILE_BYTES = 128 << 20
MAX_PARTS = 1_000_000
MAX_DEPTH = 1024
MAX_NAME_BYTES = 1024
_PID_LABELS = (b"pid", b"process_id")
_TID_LABELS = (b"tid", b"thread_id")
_COMM_LABELS = (b"comm", b"thread_comm", b"thread_name", b"process_name")


@dataclass(slots=True)
class Profile:
    """The message, its parts not yet put together: places in `data`."""

    data: bytes
    types: list[tuple[int, int]] = field(default_factory=list)  # strings: type, unit
    samples: list[tuple[int, int]] = field(default_factory=list)
    mappings: dict[int, int] = field(default_factory=dict)  # id → string: file name
    locations: dict[int, tuple[int, int, list[int]]] = field(default_factory=dict)
    functions: dict[int, int] = field(default_factory=dict)  # id → string: name
    strings: list[tuple[int, int]] = field(default_factory=list)
    time_ns: int = 0
    duration_ns: int = 0
    period: int = 0

    def string(self, number: int) -> bytes:
        """A string of the table; empty if there is none."""
        if not 0 <= number < len(self.strings):
            return b""
        start, end = self.strings[number]
        return self.data[start : min(end, start + MAX_NAME_BYTES)]


def looks_like_pprof(head: bytes) -> bool:
    """Return whether unpacked bytes begin a profile: a sample type, samples or mappings."""
    seen = set()
    try:
        for number, kind, _, end in protobuf.fields(head, 0, len(head)):
            if not 1 <= number <= 15 or (number <= 6 and kind != protobuf.BYTES):
                return False
            seen.add(number)
            if end > len(head) - 16 or len(seen) > 3:
                break
    except protobuf.NotAMessage as error:
        return 1 in seen and len(seen) > 1 and error.offset > 0 and "ends inside" in str(error)
    return 1 in seen and len(seen) > 1


def join(blocks: Iterable[bytes], path: Path, notes: Notes) -> bytes:
    """The whole profile, which is as much as one message may be."""
    parts, size = [], 0
    for block in blocks:
        size += len(block)
        if size > MAX_PROFILE_BYTES:
            raise MalformedSource(path, f"a profile of more than {MAX_PROFILE_BYTES >> 20} MiB")
        parts.append(block)
    notes.offset = size
    return b"".join(parts)


def parse_profile(data: bytes, notes: Notes) -> Profile:
    """Take the message apart; what comes after the first damage is left out."""
    profile = Profile(data)
    limits: dict[int, Sized] = {
        1: profile.types,
        2: profile.samples,
        3: profile.mappings,
        4: profile.locations,
        5: profile.functions,
        6: profile.strings,
    }
    try:
        for number, kind, value, end in protobuf.fields(data, 0, len(data)):
            if number in limits and len(limits[number]) >= MAX_PARTS:
                notes.stop(value, f"more than {MAX_PARTS} parts of one kind")
                break
            _add_field(profile, number, kind, value, end)
    except protobuf.NotAMessage as error:
        notes.stop(error.offset, str(error))
    profile.time_ns = min(max(profile.time_ns, 0), MAX_TIME_NS)
    profile.duration_ns = min(max(profile.duration_ns, 0), DAY_NS)
    return profile


def _add_field(profile: Profile, number: int, kind: int, value: int, end: int) -> None:
    data = profile.data
    if kind == protobuf.BYTES:
        if number == 1:
            message = _numbers(data, value, end)
            profile.types.append((message.get(1, 0), message.get(2, 0)))
        elif number == 2:
            profile.samples.append((value, end))
        elif number == 3:
            message = _numbers(data, value, end)
            profile.mappings[message.get(1, 0)] = message.get(5, 0)
        elif number == 4:
            _add_location(profile, value, end)
        elif number == 5:
            message = _numbers(data, value, end)
            profile.functions[message.get(1, 0)] = message.get(2, 0) or message.get(3, 0)
        elif number == 6:
            profile.strings.append((value, end))
    elif kind == protobuf.VARINT:
        if number == 9:
            profile.time_ns = protobuf.signed(value)
        elif number == 10:
            profile.duration_ns = protobuf.signed(value)
        elif number == 12:
            profile.period = protobuf.signed(value)


def _numbers(data: bytes, start: int, end: int) -> dict[int, int]:
    """The varints of a message, by field number."""
    return {
        number: value
        for number, kind, value, _ in protobuf.fields(data, start, end)
        if kind == protobuf.VARINT
    }


def _add_location(profile: Profile, start: int, end: int) -> None:
    identifier = mapping = address = 0
    functions: list[int] = []
    for number, kind, value, stop in protobuf.fields(profile.data, start, end):
        if kind == protobuf.VARINT:
            if number == 1:
                identifier = value
            elif number == 2:
                mapping = value
            elif number == 3:
                address = value
        elif number == 4 and kind == protobuf.BYTES and len(functions) < MAX_DEPTH:
            functions.append(_numbers(profile.data, value, stop).get(1, 0))
    profile.locations[identifier] = (mapping, address, functions)


def counts_by(profile: Profile) -> tuple[int, int, str] | None:
    """Which value says how often a stack was seen: its place, its divisor, its name."""
    types = [(profile.string(kind), profile.string(unit)) for kind, unit in profile.types]
    for wanted in ((b"samples", b"count"), (b"sample", b"count")):
        if wanted in types:
            return types.index(wanted), 1, "samples"
    for kind, unit in types:
        if kind == b"cpu" and unit == b"count":
            return types.index((kind, unit)), 1, "cpu samples"
    period = profile.period if profile.period > 0 else 10_000_000
    for name in (b"cpu", b"wall"):
        if (name, b"nanoseconds") in types:
            return types.index((name, b"nanoseconds")), period, f"{name.decode()} time"
    return None


def count_stacks(profile: Profile, names: ParsedNames, notes: Notes, path: Path) -> list[Counted]:
    """All stacks with how often each was seen."""
    chosen = counts_by(profile)
    if chosen is None and notes.stopped is not None:
        raise MalformedSource(path, f"no samples in it: {notes.stopped} (byte {notes.offset})")
    if chosen is None:
        kinds = [
            f"{clean(profile.string(kind), 40)}/{clean(profile.string(unit), 40)}"
            for kind, unit in profile.types[:8]
        ]
        raise MalformedSource(
            path,
            f"a profile of {', '.join(kinds) or 'nothing'}, which counts no samples",
            hint="a CPU profile has samples/count or cpu/nanoseconds",
        )
    place, divisor, name = chosen
    if divisor > 1:
        notes.remark(f"samples were counted as {name} divided by {divisor} ns")
    frames = _Frames(profile, names)
    counted: list[Counted] = []
    for start, end in profile.samples:
        try:
            locations, values, labels = _sample(profile.data, start, end)
            ids = _labels(profile, labels)
        except protobuf.NotAMessage as error:
            notes.stop(error.offset, str(error))
            break
        count = round(values[place] / divisor) if place < len(values) else 0
        if not 0 < count < 1 << 40:
            notes.skipped["stacks without a count"] += 1
            continue
        number = names.path(tuple(frames.of(locations[:MAX_DEPTH])))
        counted.append(Counted(names.comm(ids[2] or UNKNOWN), ids[0], ids[1], number, count))
    return counted


def _sample(
    data: bytes, start: int, end: int
) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    locations: list[int] = []
    values: list[int] = []
    labels: list[tuple[int, int]] = []
    for number, kind, value, stop in protobuf.fields(data, start, end):
        if number == 1:
            locations += protobuf.numbers(data, kind, value, stop)
        elif number == 2:
            values += map(protobuf.signed, protobuf.numbers(data, kind, value, stop))
        elif number == 3 and kind == protobuf.BYTES and len(labels) < 64:
            labels.append((value, stop))
    return locations, values, labels


def _labels(profile: Profile, labels: list[tuple[int, int]]) -> tuple[int, int, str]:
    """Process, thread and comm, as far as labels tell."""
    pid = tid = 0
    comm = ""
    for start, end in labels:
        label = _numbers(profile.data, start, end)
        key = profile.string(label.get(1, 0))
        text = profile.string(label.get(2, 0)) if label.get(2) else b""
        number = (
            int(text) if text.isdigit() and len(text) < 11 else protobuf.signed(label.get(3, 0))
        )
        number = number if 0 <= number < 1 << 31 else 0
        if key in _PID_LABELS:
            pid = number
        elif key in _TID_LABELS:
            tid = number
        elif key in _COMM_LABELS and text:
            comm = clean(text, 64)
    return pid or tid or UNKNOWN_PID, tid or pid or UNKNOWN_PID, comm


class _Frames:
    """Locations as frames, each made once; inlined functions are several of them."""

    def __init__(self, profile: Profile, names: ParsedNames) -> None:
        self._profile = profile
        self._names = names
        self._known: dict[int, tuple[int, ...]] = {}

    def of(self, locations: list[int]) -> list[int]:
        """The frames of a stack, outermost first."""
        found: list[int] = []
        for location in reversed(locations):
            frames = self._known.get(location)
            if frames is None:
                frames = self._known[location] = tuple(self._make(location))
            found += frames
            if len(found) > MAX_DEPTH:
                break
        return collapse_unknown(found)

    def _make(self, location: int) -> Iterator[int]:
        profile = self._profile
        mapping, address, functions = profile.locations.get(location, (0, 0, []))
        module = profile.string(profile.mappings.get(mapping, 0))
        if not functions:
            yield self._names.frame(make_frame(address, b"", module))
        for function in reversed(functions):  # the innermost stands first
            name = profile.string(profile.functions.get(function, 0))
            if name.endswith(b"_[k]"):
                yield self._names.frame(ParsedFrame("[kernel]", clean(name[:-4]), True))
            else:
                yield self._names.frame(make_frame(address, name, module))


def _peek(path: Path) -> Peek:
    notes = Notes()
    profile = parse_profile(join(whole_blocks(path, notes), path, notes), notes)
    return Peek(None, profile.time_ns or modified_ns(path))


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    names, notes = ParsedNames(), Notes()
    profile = parse_profile(join(whole_blocks(path, notes, progress), path, notes), notes)
    counted = count_stacks(profile, names, notes, path)
    if not counted:
        raise nothing_in(path, "stack with a count", notes)
    span_ns = profile.duration_ns or span_of(counted)
    if not profile.duration_ns:
        notes.remark("it does not say how long it lasted; it was taken as one core at 100 Hz")
    source = "the start time in the profile"
    from_ns = profile.time_ns
    if not from_ns:
        source = "the time the file was last written"
        from_ns = max(modified_ns(path) - span_ns, 0)
    add_spread(sink, path, counted, names, notes, from_ns=from_ns, span_ns=span_ns, source=source)
    return report_of(path, FORMAT.name, notes)


FORMAT = ImportFormat("pprof", detects(looks_like_pprof), _peek, _import)
