"""Perf records as columns.

Only the record sizes are walked in Python; every field is then taken from all
records of a kind at once by fancy indexing, and all call chains together as one
flat array with their bounds. Where a record holds what depends on the sample type
(`perf_event.h`) and is told by a `RecordLayout`. The recorder's is that of what
`event.Sampler` asks for: TID, TIME, CALLCHAIN and maybe CGROUP, with
`sample_id_all`, so that the last word of every other record is its time.

A record that does not hold what its type promises is counted in `malformed`
and skipped; a size of 0 or past the end ends the walk there.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from nodescope.arrays import I64, U64, Bool
from nodescope.numbering import gather
from nodescope.perf.kernel_code import CodeChange, read_code_change

Bytes: TypeAlias = bytes | mmap.mmap

LOST, COMM, EXIT, THROTTLE, UNTHROTTLE, FORK, SAMPLE = 2, 3, 4, 5, 6, 7, 9
MMAP2, LOST_SAMPLES, KSYMBOL, CGROUP = 10, 13, 17, 19

_CPUMODE = np.uint64(7 << 32)
_CPUMODE_KERNEL = np.uint64(1 << 32)
_COMM_EXEC = np.uint64(1 << 45)  # PERF_RECORD_MISC_COMM_EXEC, 1 << 13 of misc
_LOW = np.uint64(0xFFFFFFFF)
_32, _48 = np.uint64(32), np.uint64(48)

# Call chains are interleaved with markers in the last page of the address space.
_FIRST_MARKER = np.uint64(2**64 - 4095)
_MARK_KERNEL = np.uint64(2**64 - 128)
_MARK_USER = np.uint64(2**64 - 512)
_LOWEST_CODE = np.uint64(0x1000)  # nothing is ever mapped in page 0: the end of a chain
_MAX_TEXT = 4096  # PATH_MAX: longer than any name in a record


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """Where fields are, in words; 0 means that they are not recorded.

    Of samples counted from the record's start; `cgroup` from its end, because
    the chain and more before it vary. Of other records counted from the end,
    where `sample_id` takes `trailer` words.
    """

    pid: int = 1
    time: int = 2
    cpu: int = 0  # else it is known from the ring
    chain: int = 3  # how many entries; they follow
    ip: int = 0  # taken where there is no chain
    cgroup: int = 0
    trailer: int = 2
    trailer_time: int = 1
    back: int = 1  # from a return address to the call

    @property
    def least(self) -> int:
        """The words a sample has at least, with an empty chain."""
        return max(self.pid, self.time, self.cpu, self.chain, self.ip) + 1 + self.cgroup


RECORDED = RecordLayout()
RECORDED_WITH_CGROUP = RecordLayout(cgroup=1)


@dataclass(frozen=True, slots=True)
class Chains:
    """One call chain per sample, innermost first, in one flat array.

    Callers are return addresses: the address before is what belongs to the
    call, so every frame but the innermost is `Layout.back` less than the kernel gave.
    """

    addresses: U64
    starts: I64
    lengths: I64


@dataclass(frozen=True, slots=True)
class RingSamples:
    """The samples of a batch."""

    cpu: I64
    time_ns: I64
    pid: I64
    tid: I64
    kernel_mode: Bool
    cgroup: U64 | None
    kernel: Chains
    user: Chains

    def __len__(self) -> int:
        return len(self.time_ns)


@dataclass(frozen=True, slots=True)
class Comms:
    """Threads that took a name; `exec` where a new program did it."""

    pid: I64
    tid: I64
    time_ns: I64
    exec: Bool
    name: npt.NDArray[np.void]  # 16 bytes, NUL padded


@dataclass(frozen=True, slots=True)
class Tasks:
    """Threads that were born (`parent_tid` gave birth) or that ended."""

    pid: I64
    parent_pid: I64
    tid: I64
    parent_tid: I64
    time_ns: I64


@dataclass(frozen=True, slots=True)
class Mappings:
    """Executable mappings that were made."""

    pid: I64
    time_ns: I64
    start: U64
    length: U64
    offset: U64
    file: U64  # n × 3: device, inode, generation
    name_at: I64  # byte where the file's name starts in the batch


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """All that the rings held."""

    data: Bytes
    samples: RingSamples
    comms: Comms
    forks: Tasks
    exits: Tasks
    mappings: Mappings
    cgroups: tuple[tuple[int, str], ...]
    lost: tuple[tuple[int, int], ...]  # cpu, records
    throttled: tuple[int, ...]  # cpus
    code_changes: tuple[CodeChange, ...]
    malformed: int

    def name(self, at: int) -> str:
        """The NUL-terminated text at that byte."""
        return text_at(self.data, at)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The content of one ring at one time, and the bytes at which its records start."""

    cpu: int
    data: bytes
    offsets: npt.NDArray[np.uint32]
    malformed: int


def split(cpu: int, data: bytes) -> Chunk:
    """Find the records in what a ring held: the only walk from record to record."""
    found: list[int] = []
    append = found.append
    sizes = memoryview(data).cast("H")[3::4]  # of the record that starts at that word, if any
    at, end = 0, len(data) >> 3
    while at < end:
        append(at)
        step = sizes[at] >> 3
        if not step:
            break
        at += step
    offsets = np.array(found, np.uint32) * np.uint32(8)
    whole = len(found)
    if at != end or len(data) & 7:
        whole -= 1  # the last one is cut, or its size is 0
    return Chunk(cpu, data, offsets[:whole], len(found) - whole)


def join(chunks: Sequence[Chunk]) -> tuple[bytes, I64, list[int]]:
    """All chunks as one: their bytes, the word at which each record starts, records of each."""
    data = b"".join(chunk.data for chunk in chunks)
    lengths = np.array([len(chunk.data) for chunk in chunks], np.int64)
    counts = [len(chunk.offsets) for chunk in chunks]
    offsets = [np.empty(0, np.uint32), *(chunk.offsets for chunk in chunks)]
    at = (np.concatenate(offsets) + np.repeat(np.cumsum(lengths) - lengths, counts)) >> 3
    return data, at, counts


def decode(chunks: Sequence[Chunk], *, cgroup: bool) -> RecordBatch:
    """Decode what the rings of several CPUs held."""
    data, at, counts = join(chunks)
    words = np.frombuffer(data, np.uint64, len(data) // 8)
    cpu = np.repeat(np.array([chunk.cpu for chunk in chunks], np.int64), counts)
    malformed = sum(chunk.malformed for chunk in chunks)
    layout = RECORDED_WITH_CGROUP if cgroup else RECORDED
    return decode_records(data, words, at, cpu, layout, malformed)


def decode_records(
    data: Bytes, words: U64, at: I64, cpu: I64, layout: RecordLayout, malformed: int = 0
) -> RecordBatch:
    """Decode the records that start at the words `at`, in any order.

    `words` are those of `data`; `cpu` is where each record comes from, unless
    samples tell themselves. Every record must be there to its end.
    """
    head = words[at]
    kind = (head & _LOW).astype(np.int64)
    size = (head >> _48).astype(np.int64) >> 3
    trailer = layout.trailer

    def rows(wanted: int, least: int) -> I64:
        nonlocal malformed
        chosen = np.flatnonzero(kind == wanted)
        whole: I64 = chosen[size[chosen] >= least]
        malformed += len(chosen) - len(whole)
        return whole

    chosen = rows(SAMPLE, layout.least)
    if layout.chain:
        counts = words[at[chosen] + layout.chain]
        room = size[chosen] - (layout.chain + 1 + layout.cgroup)
        fits = counts <= room.astype(np.uint64)
        malformed += int(len(fits) - np.count_nonzero(fits))
        chosen = chosen[fits]
        samples = _samples(
            words, at[chosen], size[chosen], cpu[chosen], counts[fits].astype(np.int64), layout
        )
    else:
        samples = _samples(words, at[chosen], size[chosen], cpu[chosen], None, layout)

    lost = [
        (int(cpu[row]), int(words[at[row] + field]))
        for wanted, field, least in ((LOST, 2, 3), (LOST_SAMPLES, 1, 2))
        for row in rows(wanted, least)
    ]
    comm_rows, mapping_rows = rows(COMM, 3 + trailer), rows(MMAP2, 10 + trailer)
    fork_rows, exit_rows = rows(FORK, 4), rows(EXIT, 4)
    return RecordBatch(
        data=data,
        samples=samples,
        comms=_comms(words, at[comm_rows], size[comm_rows], head[comm_rows], layout),
        forks=_tasks(words, at[fork_rows]),
        exits=_tasks(words, at[exit_rows]),
        mappings=_mappings(words, at[mapping_rows], size[mapping_rows], layout),
        cgroups=tuple(_cgroup(data, words, int(at[row])) for row in rows(CGROUP, 3 + trailer)),
        lost=tuple(lost),
        throttled=tuple(int(cpu[row]) for row in rows(THROTTLE, 4)),
        code_changes=tuple(
            _code_change(data, words, int(at[row]), int(size[row]), layout)
            for row in rows(KSYMBOL, 4 + trailer)
        ),
        malformed=malformed,
    )


def _pair(words: U64) -> tuple[I64, I64]:
    """Two 32-bit numbers of one word, low first."""
    return (words & _LOW).astype(np.int64), (words >> _32).astype(np.int64)


def _samples(
    words: U64, at: I64, size: I64, cpu: I64, counts: I64 | None, layout: RecordLayout
) -> RingSamples:
    pid, tid = _pair(words[at + layout.pid])
    kernel_mode = (words[at] & _CPUMODE) == _CPUMODE_KERNEL
    if counts is None:
        kernel, user = _only_leaves(words[at + layout.ip], kernel_mode)
    else:
        kernel, user = _split_chains(words, at + (layout.chain + 1), counts, layout.back)
    return RingSamples(
        cpu=(words[at + layout.cpu] & _LOW).astype(np.int64) if layout.cpu else cpu,
        time_ns=words[at + layout.time].astype(np.int64),
        pid=pid,
        tid=tid,
        kernel_mode=kernel_mode,
        cgroup=words[at + size - layout.cgroup] if layout.cgroup else None,
        kernel=kernel,
        user=user,
    )


def _only_leaves(addresses: U64, kernel_mode: Bool) -> tuple[Chains, Chains]:
    """Samples without a chain: each is one frame, in the kernel or not."""
    bounds = np.arange(len(addresses) + 1)
    is_code = addresses >= _LOWEST_CODE
    return (
        _select(addresses, is_code & kernel_mode, bounds),
        _select(addresses, is_code & ~kernel_mode, bounds),
    )


def _split_chains(words: U64, at: I64, counts: I64, back: int) -> tuple[Chains, Chains]:
    """Part each chain at its context markers into kernel and user frames."""
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    chain = gather(words, at, counts)
    # Runs of code end where there is none: at a marker, which says whose the next run is, or
    # at a small number. What stands before a chain's first marker is nobody's.
    is_break = chain - _LOWEST_CODE >= _FIRST_MARKER - _LOWEST_CODE
    is_break[bounds[:-1][counts > 0]] = True
    breaks = np.flatnonzero(is_break)
    runs = np.diff(breaks, append=len(chain)) - 1
    owner = np.searchsorted(bounds, breaks, "right") - 1
    mark = chain[breaks]
    says = (mark >= _FIRST_MARKER) | (breaks == bounds[owner])
    # The kernel's part comes first: after a user's marker others are what a walk
    # without frame pointers took for one, a small negative number on the stack.
    state = 2 * owner + (mark == _MARK_USER)
    is_user = np.maximum.accumulate(state) == 2 * owner + 1
    said = np.maximum.accumulate(np.where(says, np.arange(len(breaks)), 0))
    is_kernel = ~is_user & (mark[said] == _MARK_KERNEL)
    parts = []
    for wanted in (is_kernel, is_user):
        rows = np.flatnonzero(wanted & (runs > 0))
        lengths = runs[rows]
        addresses = gather(chain, breaks[rows] + 1, lengths)
        if back:  # a caller's address is where it goes on, not where it called
            addresses -= np.uint64(back)
            leaves = says[rows]
            addresses[(np.cumsum(lengths) - lengths)[leaves]] += np.uint64(back)
        frames = np.bincount(owner[rows], lengths, len(counts)).astype(np.int64)
        parts.append(Chains(addresses, np.cumsum(frames) - frames, frames))
    return parts[0], parts[1]


def _select(addresses: U64, wanted: Bool, bounds: I64) -> Chains:
    passed = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(wanted, out=passed[1:])
    starts = passed[bounds[:-1]]
    return Chains(addresses[wanted], starts, passed[bounds[1:]] - starts)


def _comms(words: U64, at: I64, size: I64, head: U64, layout: RecordLayout) -> Comms:
    pid, tid = _pair(words[at + 1])
    # The name takes one word or two, as long as it is; sample_id follows.
    names = np.zeros((len(at), 2), np.uint64)
    names[:, 0] = words[at + 2]
    long = size > 3 + layout.trailer
    names[long, 1] = words[at[long] + 3]
    return Comms(
        pid=pid,
        tid=tid,
        time_ns=_trailing_time(words, at, size, layout),
        exec=(head & _COMM_EXEC) != 0,
        name=names.view("V16").ravel(),
    )


def _tasks(words: U64, at: I64) -> Tasks:
    pid, parent_pid = _pair(words[at + 1])
    tid, parent_tid = _pair(words[at + 2])
    return Tasks(pid, parent_pid, tid, parent_tid, words[at + 3].astype(np.int64))


def _trailing_time(words: U64, at: I64, size: I64, layout: RecordLayout) -> I64:
    if not layout.trailer_time:
        return np.zeros(len(at), np.int64)
    times: I64 = words[at + size - layout.trailer_time].astype(np.int64)
    return times


def _mappings(words: U64, at: I64, size: I64, layout: RecordLayout) -> Mappings:
    pid, _tid = _pair(words[at + 1])
    return Mappings(
        pid=pid,
        time_ns=_trailing_time(words, at, size, layout),
        start=words[at + 2],
        length=words[at + 3],
        offset=words[at + 4],
        file=words[at[:, None] + np.array([5, 6, 7])],
        name_at=(at + 9) << 3,
    )


def _cgroup(data: Bytes, words: U64, at: int) -> tuple[int, str]:
    return int(words[at + 1]), text_at(data, (at + 2) << 3)


def _code_change(data: Bytes, words: U64, at: int, size: int, layout: RecordLayout) -> CodeChange:
    start, about = int(words[at + 1]), int(words[at + 2])
    name_at = (at + 3) << 3
    name_end = data.find(b"\0", name_at, (at + size) << 3)
    end = at + size
    if name_end >= 0:
        # Its sample_id follows the name, padded to a word, and need not be the last: where more
        # than one listens, the kernel makes the record longer for each of them
        # (perf_event_ksymbol_output does not set header.size back, v5.1 to v6.18 at the least).
        end = min(end, (name_end >> 3) + 1 + layout.trailer)
    time_ns = int(words[end - layout.trailer_time]) if layout.trailer_time else 0
    return read_code_change(time_ns, start, about, text_at(data, name_at))


def text_at(data: Bytes, at: int) -> str:
    """The NUL-terminated text at that byte."""
    last = at + _MAX_TEXT
    end = data.find(b"\0", at, last)
    return data[at : end if end >= 0 else last].decode("utf-8", "replace")
