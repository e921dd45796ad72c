"""Perf records as columns.

Only the record sizes are walked in Python; every field is then taken from all
records of a kind at once by fancy indexing, and all call chains together as one
flat array with their bounds. Layouts are those of `perf_event.h` for the sample
type that `event.Sampler` asks for: TID, TIME, CALLCHAIN and maybe CGROUP, with
`sample_id_all`, so that the last word of every other record is its time.

A record that does not hold what its type promises is counted in `malformed`
and skipped; a size of 0 or past the end ends the walk there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

LOST, COMM, EXIT, THROTTLE, UNTHROTTLE, FORK, SAMPLE = 2, 3, 4, 5, 6, 7, 9
MMAP2, LOST_SAMPLES, KSYMBOL, BPF_EVENT, CGROUP = 10, 13, 17, 18, 19

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


@dataclass(frozen=True, slots=True)
class Chains:
    """One call chain per sample, innermost first, in one flat array.

    Callers are return addresses: the address before is what belongs to the
    call, so every frame but the innermost is one less than the kernel gave.
    """

    addresses: U64
    starts: I64
    lengths: I64


@dataclass(frozen=True, slots=True)
class Samples:
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
class Batch:
    """All that the rings held."""

    data: bytes
    samples: Samples
    comms: Comms
    forks: Tasks
    exits: Tasks
    mappings: Mappings
    cgroups: tuple[tuple[int, str], ...]
    lost: tuple[tuple[int, int], ...]  # cpu, records
    throttled: tuple[int, ...]  # cpus
    kernel_symbols_changed: bool
    malformed: int

    def name(self, at: int) -> str:
        """The NUL-terminated text at that byte."""
        return _text(self.data, at)


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one ring held at one time, and the bytes at which its records start."""

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


def mapped_files(
    chunk: Chunk, met: set[tuple[int, int]]
) -> list[tuple[int, str, tuple[int, int], int]]:
    """Files mapped in a chunk that are not in `met` yet, which takes them in.

    Each is (pid, path, device, inode). Cheap enough to be asked of every chunk.
    """
    words = np.frombuffer(chunk.data, np.uint64, len(chunk.data) // 8)
    at = chunk.offsets >> 3
    at = at[(words[at] & _LOW) == MMAP2]
    at = at[at + 9 < len(words)]
    files = dict(
        zip(
            zip(words[at + 5].tolist(), words[at + 6].tolist(), strict=True),
            at.tolist(),
            strict=True,
        )
    )
    new = []
    for device, inode in files.keys() - met:
        met.add((device, inode))
        if inode:
            row = files[device, inode]
            path = _text(chunk.data, (row + 9) << 3)
            pid = int(words[row + 1] & _LOW)
            new.append((pid, path, (device & 0xFFFFFFFF, device >> 32), inode))
    return new


def decode(chunks: Sequence[Chunk], *, cgroup: bool) -> Batch:
    """Decode what the rings of several CPUs held."""
    data = b"".join(chunk.data for chunk in chunks)
    words = np.frombuffer(data, np.uint64, len(data) // 8)
    lengths = np.array([len(chunk.data) for chunk in chunks], np.int64)
    counts = [len(chunk.offsets) for chunk in chunks]
    offsets = [np.empty(0, np.uint32), *(chunk.offsets for chunk in chunks)]
    at = (np.concatenate(offsets) + np.repeat(np.cumsum(lengths) - lengths, counts)) >> 3
    cpu = np.repeat(np.array([chunk.cpu for chunk in chunks], np.int64), counts)
    malformed = sum(chunk.malformed for chunk in chunks)
    head = words[at]
    kind = (head & _LOW).astype(np.int64)
    size = (head >> _48).astype(np.int64) >> 3

    def rows(wanted: int, least: int) -> I64:
        nonlocal malformed
        chosen = np.flatnonzero(kind == wanted)
        whole: I64 = chosen[size[chosen] >= least]
        malformed += len(chosen) - len(whole)
        return whole

    chosen = rows(SAMPLE, 4 + cgroup)
    counts = words[at[chosen] + 3]
    fits = counts <= (size[chosen] - 4 - cgroup).astype(np.uint64)
    malformed += int(len(fits) - np.count_nonzero(fits))
    chosen = chosen[fits]
    samples = _samples(words, at[chosen], cpu[chosen], counts[fits].astype(np.int64), cgroup)

    lost = [
        (int(cpu[row]), int(words[at[row] + field]))
        for wanted, field, least in ((LOST, 2, 3), (LOST_SAMPLES, 1, 2))
        for row in rows(wanted, least)
    ]
    comm_rows, mapping_rows = rows(COMM, 5), rows(MMAP2, 12)
    fork_rows, exit_rows = rows(FORK, 4), rows(EXIT, 4)
    return Batch(
        data=data,
        samples=samples,
        comms=_comms(words, at[comm_rows], size[comm_rows], head[comm_rows]),
        forks=_tasks(words, at[fork_rows]),
        exits=_tasks(words, at[exit_rows]),
        mappings=_mappings(words, at[mapping_rows], size[mapping_rows]),
        cgroups=tuple(_cgroup(data, words, int(at[row])) for row in rows(CGROUP, 5)),
        lost=tuple(lost),
        throttled=tuple(int(cpu[row]) for row in rows(THROTTLE, 4)),
        kernel_symbols_changed=bool(np.any((kind == KSYMBOL) | (kind == BPF_EVENT))),
        malformed=malformed,
    )


def _pair(words: U64) -> tuple[I64, I64]:
    """Two 32-bit numbers of one word, low first."""
    return (words & _LOW).astype(np.int64), (words >> _32).astype(np.int64)


def _samples(words: U64, at: I64, cpu: I64, counts: I64, cgroup: bool) -> Samples:
    pid, tid = _pair(words[at + 1])
    kernel, user = _split_chains(words, at + 4, counts)
    return Samples(
        cpu=cpu,
        time_ns=words[at + 2].astype(np.int64),
        pid=pid,
        tid=tid,
        kernel_mode=(words[at] & _CPUMODE) == _CPUMODE_KERNEL,
        cgroup=words[at + 4 + counts] if cgroup else None,
        kernel=kernel,
        user=user,
    )


def _split_chains(words: U64, at: I64, counts: I64) -> tuple[Chains, Chains]:
    """Part each chain at its context markers into kernel and user frames."""
    total = int(counts.sum())
    bounds = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=bounds[1:])
    position = np.arange(total)
    chain = words[np.repeat(at - bounds[:-1], counts) + position]
    is_marker = chain >= _FIRST_MARKER
    # The marker in force at each place. Every chain starts with one, so that
    # the accumulation never carries one sample's marker into the next.
    marker_at = np.maximum.accumulate(np.where(is_marker, position, 0)) if total else position
    marker = chain[marker_at]
    addresses = chain - (position != marker_at + 1).astype(np.uint64)
    is_code = ~is_marker & (chain >= _LOWEST_CODE)
    return (
        _select(addresses, is_code & (marker == _MARK_KERNEL), bounds),
        _select(addresses, is_code & (marker == _MARK_USER), bounds),
    )


def _select(addresses: U64, wanted: Bool, bounds: I64) -> Chains:
    passed = np.zeros(len(wanted) + 1, np.int64)
    np.cumsum(wanted, out=passed[1:])
    starts = passed[bounds[:-1]]
    return Chains(addresses[wanted], starts, passed[bounds[1:]] - starts)


def _comms(words: U64, at: I64, size: I64, head: U64) -> Comms:
    pid, tid = _pair(words[at + 1])
    # The name takes one word or two, as long as it is; two of sample_id follow.
    names = np.zeros((len(at), 2), np.uint64)
    names[:, 0] = words[at + 2]
    long = size > 5
    names[long, 1] = words[at[long] + 3]
    return Comms(
        pid=pid,
        tid=tid,
        time_ns=words[at + size - 1].astype(np.int64),
        exec=(head & _COMM_EXEC) != 0,
        name=names.view("V16").ravel(),
    )


def _tasks(words: U64, at: I64) -> Tasks:
    pid, parent_pid = _pair(words[at + 1])
    tid, parent_tid = _pair(words[at + 2])
    return Tasks(pid, parent_pid, tid, parent_tid, words[at + 3].astype(np.int64))


def _mappings(words: U64, at: I64, size: I64) -> Mappings:
    pid, _tid = _pair(words[at + 1])
    return Mappings(
        pid=pid,
        time_ns=words[at + size - 1].astype(np.int64),
        start=words[at + 2],
        length=words[at + 3],
        offset=words[at + 4],
        file=words[at[:, None] + np.array([5, 6, 7])],
        name_at=(at + 9) << 3,
    )


def _cgroup(data: bytes, words: U64, at: int) -> tuple[int, str]:
    return int(words[at + 1]), _text(data, (at + 2) << 3)


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at)
    return data[at : end if end >= 0 else len(data)].decode("utf-8", "replace")
