"""The frame of a `perf.data` file: header, events, features.

Layouts follow tools/perf/Documentation/perf.data-file-format.txt and
`struct perf_event_attr` of `include/uapi/linux/perf_event.h`. Nothing in the
file is taken on trust: offsets and counts are held against its size, a feature
that makes no sense is left out, and only a file whose events cannot be known
is refused (`MalformedSource`).

In pipe mode (`perf record -o -`) there is no such frame: events and features
come as records of their own, before the first sample. `read_pipe_record` takes
them in one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from nodescope.errors import MalformedSource
from nodescope.perf.decode import Bytes

MAGIC = b"PERFILE2"
PIPE_HEADER_BYTES = 16
_HEADER = struct.Struct("<8sQQ6Q32s")
_FEATURE_BITS = 256
_MAX_ATTRIBUTES = 1 << 14
_MAX_IDS = 1 << 20
_MAX_TEXT = 4096
_LEAST_ATTRIBUTE = 64  # PERF_ATTR_SIZE_VER0

BUILD_ID, HOSTNAME, OSRELEASE, ARCH, NRCPUS, TOTAL_MEM = 2, 3, 4, 6, 7, 10
CMDLINE, EVENT_DESC, SAMPLE_TIME, CLOCK_DATA = 11, 12, 21, 29

HEADER_ATTR, HEADER_BUILD_ID, EVENT_UPDATE, HEADER_FEATURE = 64, 67, 78, 80

_FREQ, _SAMPLE_ID_ALL, _USE_CLOCKID = 1 << 10, 1 << 18, 1 << 25
_MISC_BUILD_ID_SIZE = 1 << 15
_EVENT_UPDATE_NAME = 2
CPUMODE_KERNEL = 1

_SOFTWARE = ("cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations",
             "minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy",
             "bpf-output", "cgroup-switches")  # fmt: skip
_HARDWARE = ("cycles", "instructions", "cache-references", "cache-misses", "branches",
             "branch-misses", "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend",
             "ref-cycles")  # fmt: skip
_CPU_TIME = {(1, 0), (1, 1), (0, 0), (0, 9)}  # cpu-clock, task-clock, cycles, ref-cycles


@dataclass(slots=True)
class PerfEvent:
    """One event that was recorded: what `struct perf_event_attr` says of it."""

    type: int
    config: int
    period: int  # or frequency
    sample_type: int
    read_format: int
    flags: int
    clock_id: int
    max_stack: int
    ids: tuple[int, ...] = ()
    name: str = ""

    @property
    def is_dummy(self) -> bool:
        """Return whether the event only carries side-band records."""
        return (self.type, self.config) == (1, 9)

    @property
    def measures_cpu_time(self) -> bool:
        """Return whether its samples are spread over the time cores were busy."""
        # Hybrid machines put the PMU into the upper half of `config`.
        config = self.config & 0xFFFFFFFF if self.type == 0 else self.config
        return (self.type, config) in _CPU_TIME or self.name.split(":")[0].endswith("cycles/")

    @property
    def frequency_hz(self) -> int | None:
        """Samples per second and core; None where a period was asked for."""
        return self.period if self.flags & _FREQ and self.period < 1 << 31 else None

    @property
    def sample_id_all(self) -> bool:
        """Return whether other records end with the time they were made at."""
        return bool(self.flags & _SAMPLE_ID_ALL)

    @property
    def label(self) -> str:
        """Its name, or what it would be called."""
        if self.name:
            return self.name
        known = {0: _HARDWARE, 1: _SOFTWARE}.get(self.type, ())
        return known[self.config] if self.config < len(known) else f"{self.type}/{self.config:#x}/"


@dataclass(frozen=True, slots=True)
class BuildId:
    """A binary the file names with its build-id."""

    path: str
    build_id: bytes
    kernel: bool


@dataclass(slots=True)
class PerfHeader:
    """The facts of a file besides its records."""

    data_offset: int = 0
    data_bytes: int | None = None  # None: up to the end of the file
    is_pipe: bool = False
    events: list[PerfEvent] = field(default_factory=list)
    hostname: str | None = None
    kernel: str | None = None
    machine: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    command: list[str] = field(default_factory=list)
    build_ids: list[BuildId] = field(default_factory=list)
    sample_time: tuple[int, int] | None = None  # of the first and the last sample
    clock: tuple[int, int, int] | None = None  # clock id, its time, wall time

    @property
    def kernel_build_id(self) -> bytes | None:
        """Return the build id of the kernel itself, not of its modules."""
        for each in self.build_ids:
            if each.kernel and (each.path.startswith("[kernel") or "vmlinux" in each.path):
                return each.build_id
        return None


def read_header(data: Bytes, size: int, path: str) -> PerfHeader:
    """Read the frame of the file in `data`."""
    if size < PIPE_HEADER_BYTES:
        raise MalformedSource(path, f"only {size} bytes: not even the header of a perf.data file")
    magic, header_bytes = data[:8], struct.unpack("<Q", data[8:16])[0]
    if magic == MAGIC[::-1]:
        raise MalformedSource(path, "recorded on a machine of the other byte order")
    if magic != MAGIC:
        raise MalformedSource(path, f"not a perf.data file: it begins with {bytes(magic)!r}")
    if header_bytes == PIPE_HEADER_BYTES:
        return PerfHeader(PIPE_HEADER_BYTES, is_pipe=True)
    if header_bytes != _HEADER.size or size < _HEADER.size:
        raise MalformedSource(path, f"its header has {header_bytes} bytes, not {_HEADER.size}")
    _, _, attribute_bytes, *sections, features = _HEADER.unpack(data[: _HEADER.size])
    attributes_at, attributes_bytes, data_at, data_bytes, _, _ = sections
    header = PerfHeader(data_at, data_bytes or None)
    if not _HEADER.size <= data_at <= size:
        raise MalformedSource(path, f"its data would start at {data_at}, past its end")
    _read_attributes(header, data, size, (attributes_at, attributes_bytes, attribute_bytes), path)
    for number, body in _features(
        data, size, data_at + data_bytes, features if data_bytes else b""
    ):
        _read_feature(header, number, body)
    return header


def _read_attributes(
    header: PerfHeader, data: Bytes, size: int, where: tuple[int, int, int], path: str
) -> None:
    at, total, each = where
    if each < _LEAST_ATTRIBUTE + 16 or each > _MAX_TEXT or at + total > size:
        raise MalformedSource(path, "it does not say which events it is of")
    for position in range(at, at + min(total // each, _MAX_ATTRIBUTES) * each, each):
        event = parse_attribute(data[position : position + each - 16])
        ids_at, ids_bytes = struct.unpack("<QQ", data[position + each - 16 : position + each])
        if ids_at + ids_bytes <= size and ids_bytes // 8 <= _MAX_IDS:
            count = ids_bytes // 8
            event.ids = struct.unpack(f"<{count}Q", data[ids_at : ids_at + 8 * count])
        header.events.append(event)
    if not header.events:
        raise MalformedSource(path, "it is of no event")


def parse_attribute(body: bytes) -> PerfEvent:
    """An event from its `struct perf_event_attr`, of whatever version."""
    body = body[:128].ljust(128, b"\0")
    kind, _, config, period, sample_type, read_format, flags = struct.unpack_from("<IIQQQQQ", body)
    (clock_id,) = struct.unpack_from("<i", body, 92)
    (max_stack,) = struct.unpack_from("<H", body, 108)
    return PerfEvent(kind, config, period, sample_type, read_format, flags, clock_id, max_stack)


def _features(data: Bytes, size: int, at: int, bits: bytes) -> Iterator[tuple[int, bytes]]:
    numbers = [n for n in range(len(bits) * 8) if bits[n // 8] >> (n % 8) & 1]
    for position, number in enumerate(numbers[:_FEATURE_BITS]):
        section = data[at + 16 * position : at + 16 * position + 16]
        if len(section) < 16:
            return  # the file was cut before: it has none
        start, length = struct.unpack("<QQ", section)
        if start + length <= size and number in _READERS:
            yield number, data[start : start + length]


def _read_feature(header: PerfHeader, number: int, body: bytes) -> None:
    reader = _READERS.get(number)
    if reader is not None:
        try:
            reader(header, body)
        except (struct.error, ValueError, IndexError):
            pass  # a feature that makes no sense tells nothing


def read_pipe_record(header: PerfHeader, kind: int, misc: int, body: bytes) -> None:
    """Take in a record of pipe mode, without its 8 bytes of header; others are passed over."""
    try:
        if kind == HEADER_ATTR:
            (size,) = struct.unpack_from("<I", body, 4)
            size = size if _LEAST_ATTRIBUTE <= size <= len(body) else min(len(body), 128)
            event = parse_attribute(body[:size])
            count = (len(body) - size) // 8
            event.ids = struct.unpack_from(f"<{count}Q", body, size)
            if len(header.events) < _MAX_ATTRIBUTES:
                header.events.append(event)
        elif kind == HEADER_FEATURE:
            _read_feature(header, struct.unpack_from("<Q", body)[0], body[8:])
        elif kind == HEADER_BUILD_ID:
            _add_build_id(header, misc, body)
        elif kind == EVENT_UPDATE:
            what, identifier = struct.unpack_from("<QQ", body)
            if what == _EVENT_UPDATE_NAME:
                for event in header.events:
                    if identifier in event.ids:
                        event.name = _text(body[16:])
    except struct.error:
        pass


# -- features ------------------------------------------------------------------


def _text(body: bytes) -> str:
    return body[:_MAX_TEXT].split(b"\0", 1)[0].decode("utf-8", "replace")


def _string(body: bytes, at: int = 0) -> tuple[str, int]:
    """A string with its length in front; and where the next thing starts."""
    (length,) = struct.unpack_from("<I", body, at)
    if length > len(body) - at - 4:
        raise ValueError("a string longer than its section")
    return _text(body[at + 4 : at + 4 + length]), at + 4 + length


def _hostname(header: PerfHeader, body: bytes) -> None:
    header.hostname = _string(body)[0] or None


def _osrelease(header: PerfHeader, body: bytes) -> None:
    header.kernel = _string(body)[0] or None


def _arch(header: PerfHeader, body: bytes) -> None:
    header.machine = _string(body)[0] or None


def _cpus(header: PerfHeader, body: bytes) -> None:
    _available, header.cpus = struct.unpack_from("<II", body)


def _memory(header: PerfHeader, body: bytes) -> None:
    header.memory_bytes = min(struct.unpack_from("<Q", body)[0] * 1024, 1 << 60)


def _command(header: PerfHeader, body: bytes) -> None:
    (count,) = struct.unpack_from("<I", body)
    at = 4
    for _ in range(min(count, 1024)):
        word, at = _string(body, at)
        header.command.append(word)


def _descriptions(header: PerfHeader, body: bytes) -> None:
    """Names of events, by their ids, or by their order where they have none."""
    count, attribute_bytes = struct.unpack_from("<II", body)
    at = 8
    by_id = {identifier: event for event in header.events for identifier in event.ids}
    for number in range(min(count, _MAX_ATTRIBUTES)):
        at += attribute_bytes
        (id_count,) = struct.unpack_from("<I", body, at)
        name, at = _string(body, at + 4)
        if id_count > (len(body) - at) // 8:
            raise ValueError("more ids than there is room for")
        ids = struct.unpack_from(f"<{id_count}Q", body, at)
        at += 8 * id_count
        event = by_id.get(ids[0]) if ids else None
        if event is None and number < len(header.events):
            event = header.events[number]
        if event is not None:
            event.name = name


def _sample_time(header: PerfHeader, body: bytes) -> None:
    first, last = struct.unpack_from("<QQ", body)
    if 0 < first <= last < 1 << 62:
        header.sample_time = first, last


def _clock_data(header: PerfHeader, body: bytes) -> None:
    version, clock_id, wall, moment = struct.unpack_from("<IIQQ", body)
    if version == 1 and 0 < wall < 1 << 62 and moment < 1 << 62:
        header.clock = clock_id, moment, wall


def _build_ids(header: PerfHeader, body: bytes) -> None:
    at = 0
    while at + 8 <= len(body):
        _, misc, size = struct.unpack_from("<IHH", body, at)
        if size < 8 or at + size > len(body):
            raise ValueError("a build-id that is cut")
        _add_build_id(header, misc, body[at + 8 : at + size])
        at += size


def _add_build_id(header: PerfHeader, misc: int, body: bytes) -> None:
    """`struct perf_record_header_build_id` after its header: pid, build-id, file name."""
    if len(body) < 4 + 24 + 1:
        return
    # v5.12, 1ca6e80254141d26: the size stands behind the 20 bytes where misc says so.
    size = min(body[24], 20) if misc & _MISC_BUILD_ID_SIZE else 20
    build_id = body[4 : 4 + size]
    if any(build_id):
        kernel = misc & 7 == CPUMODE_KERNEL
        header.build_ids.append(BuildId(_text(body[28:]), build_id, kernel))


_READERS = {
    BUILD_ID: _build_ids,
    HOSTNAME: _hostname,
    OSRELEASE: _osrelease,
    ARCH: _arch,
    NRCPUS: _cpus,
    TOTAL_MEM: _memory,
    CMDLINE: _command,
    EVENT_DESC: _descriptions,
    SAMPLE_TIME: _sample_time,
    CLOCK_DATA: _clock_data,
}
