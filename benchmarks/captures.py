"""Captures of a large node, made of a real one of this machine: `perf.data`, its text, archives.

`perf record -g -a` is run here under the load of many short processes and some
lasting ones, at a high rate so that there is variety. Its file is then written
anew: the same frame (events, ids, features) and the same records, with other
times, cores and longer chains. What is real and what is not is said in
`WHAT_IS_SYNTHETIC`. `perf script` reads the result as any other capture.

The twelve hours are sealed segments of such captures over and over, as hard links
to the same Parquet files, each with a description that puts it on its own time.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.diversity import Walks, build_program, read_functions, running
from benchmarks.load import many_short_processes
from nodescope.archive.layout import name_segment
from nodescope.arrays import I64, U64, Bool
from nodescope.exchange.perf_data.header import NRCPUS, SAMPLE_TIME
from nodescope.quantities import SECOND_NS

CPUS, HZ, SECONDS = 96, 97, 120
CAPTURE_HZ = 1997
FRAMES = 25  # per sample, on average
OTHERS = 0.1  # of the samples of a diverse capture: what else ran
ROUND_S = 1  # how often `perf record` would have gone through the rings
WHAT_IS_SYNTHETIC = tuple(
    " ".join(text.split())
    for text in f"""
    Real: the frame of the file, every address, process, mapping, name, birth and end, and the order
    of all of them. Captured with `perf record -F {CAPTURE_HZ} -g -a` on this machine; the file says
    {HZ} Hz.

    Synthetic: times and cores. Each captured sample stands about nine times, on as many cores of
    {CPUS} within a millisecond or two; the time between is stretched so that {SECONDS} s are full.

    Synthetic: depth. Chains are lengthened to {FRAMES} frames on average by addresses at which
    processes of the same name ran (of the kernel, where a chain has only such); chains of one name
    that begin on the same page of code get the same callers. For that the load runs without
    randomised addresses.

    Synthetic: novelty. The number of distinct chains grows with the samples by a power law, fitted
    to the capture; as many samples have one address moved by a few bytes, mostly within its
    function.
    """.strip().split("\n\n")
)

COMM, FORK, SAMPLE, LOST, LOST_SAMPLES = 3, 7, 9, 2, 13
FINISHED_ROUND, FIRST_USER_KIND = 68, 64
_NO_RANDOMIZE = 0x0040000  # personality(2)
_IP, _TID, _TIME, _CHAIN, _ID, _CPU, _PERIOD = 1, 2, 4, 0x20, 0x40, 0x80, 0x100
_HEADER = struct.Struct("<8sQQ6Q32s")
_MARKER, _USER = 2**64 - 4095, 2**64 - 512
_KERNEL = 1 << 63
_LASTING = (
    (sys.executable, "-c",
     "import json\nwhile True: json.loads(json.dumps({str(i): [i] * 9 for i in range(999)}))"),
    ("perl", "-e", 'while (1) { my %h; $h{$_} = join ",", 1..$_ % 9 for 1..9999; }'),
    ("dd", "if=/dev/zero", "of=/dev/null", "bs=4k"),
    ("sh", "-c", "gzip -9 < /dev/urandom > /dev/null"),
)  # fmt: skip


@contextmanager
def _lasting_processes() -> Iterator[None]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [
        subprocess.Popen(["nice", "-n", "5", *command], start_new_session=True, **quiet)  # type: ignore[call-overload]
        for command in _LASTING
    ]
    try:
        yield
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def _fixed_addresses() -> Iterator[None]:
    """What is started meanwhile has its code where all processes of its program have it."""
    libc = ctypes.CDLL(None)
    before = libc.personality(ctypes.c_ulong(0xFFFFFFFF))
    libc.personality(ctypes.c_ulong(before | _NO_RANDOMIZE))
    try:
        yield
    finally:
        libc.personality(ctypes.c_ulong(before))


def record_here(path: Path, seconds: float, frequency_hz: int) -> None:
    """A capture of this machine under load."""
    with _fixed_addresses(), _lasting_processes(), many_short_processes():
        time.sleep(1)
        _record(path, seconds, frequency_hz)


def _record(path: Path, seconds: float, frequency_hz: int) -> None:
    command = ["perf", "record", "-q", "-N", "-m", "4M", "-F", str(frequency_hz), "-g", "-a"]
    subprocess.run(
        [*command, "-o", str(path), "--", "sleep", str(seconds)], check=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


# -- reading -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are in a sample (from its start) and in other records (from their end)."""

    time: int
    cpu: int
    chain: int
    other_time: int
    other_cpu: int

    @classmethod
    def of(cls, sample_type: int) -> Layout:
        known = _IP | _TID | _TIME | _CHAIN | _ID | _CPU | _PERIOD
        if sample_type & ~known or not {_TIME, _CHAIN, _CPU} <= {
            bit for bit in (_TIME, _CHAIN, _CPU) if sample_type & bit
        }:
            raise ValueError(f"perf record wrote samples of type {sample_type:#x}")
        place, at = {}, 1
        for bit in (_IP, _TID, _TIME, _ID, _CPU, _PERIOD):
            if sample_type & bit:
                place[bit], at = at, at + 1
        after_time = bool(sample_type & _ID) + 1
        return cls(place[_TIME], place[_CPU], at, after_time + 1, 1)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a benchmark works on."""

    truth: Path  # as perf wrote it
    large: list[Path]
    shape: dict[str, str]


class Captured:
    """A file of `perf record`, ready to be written anew."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        self.head = _HEADER.unpack_from(content)
        _, _, attribute_bytes, attributes_at, attributes_bytes, data_at, data_bytes, *_ = self.head
        self.data_at, self.data_bytes = data_at, data_bytes
        before = bytearray(content[:data_at])
        for at in range(attributes_at, attributes_at + attributes_bytes, attribute_bytes):
            struct.pack_into("<Q", before, at + 16, HZ)
        self.before, self.after = bytes(before), content[data_at + data_bytes :]
        (sample_type,) = struct.unpack_from("<Q", content, attributes_at + 24)
        self.layout = Layout.of(sample_type)
        self.words = np.frombuffer(content[data_at : data_at + data_bytes], np.uint64)
        at, places = 0, []
        sizes = self.words.view(np.uint16)[3::4].tolist()
        while at < len(sizes):
            places.append(at)
            at += sizes[at] >> 3
        self.at = np.array(places, np.int64)
        head = self.words[self.at]
        self.kind = (head & np.uint64(0xFFFFFFFF)).astype(np.int64)
        self.size = (head >> np.uint64(51)).astype(np.int64)
        of_sample = self.kind == SAMPLE
        where = np.where(
            of_sample, self.at + self.layout.time, self.at + self.size - self.layout.other_time
        )
        self.time = self.words[np.where(self.kind < FIRST_USER_KIND, where, 0)].astype(np.int64)
        self.time[self.kind >= FIRST_USER_KIND] = 0
        rows = np.flatnonzero(of_sample)
        self.samples = rows[np.argsort(self.time[rows], kind="stable")]

    def keep_mostly(self, mine: Bool, others: float) -> None:
        """Leave out samples that are not `mine`, until they are `others` of all at most."""
        kept = mine.copy()
        rest = np.flatnonzero(~mine)
        many = min(len(rest), int(mine.sum() * others / (1 - others)))
        kept[rest[np.linspace(0, len(rest) - 1, many).astype(np.int64)]] = True
        self.samples = self.samples[kept]


# -- writing -------------------------------------------------------------------


def _programs(source: Captured) -> list[str]:
    """The name each sample's thread had."""
    names: dict[int, str] = {}
    found: dict[int, str] = {}
    words = source.words
    for row in np.argsort(source.time, kind="stable").tolist():
        at, kind = int(source.at[row]), int(source.kind[row])
        if kind == SAMPLE:
            found[row] = names.get(int(words[at + 2]) >> 32, "")
        elif kind == COMM:
            text = words[at + 2 : at + 4].tobytes()
            names[int(words[at + 1]) >> 32] = text.split(b"\0", 1)[0].decode("utf-8", "replace")
        elif kind == FORK:
            thread = int(words[at + 2])
            names[thread & 0xFFFFFFFF] = names.get(thread >> 32, "")
    return [found[row] for row in source.samples.tolist()]


def _walkers(source: Captured) -> Bool:
    """Which samples are of the program of `diversity.py`."""
    return np.array([name.startswith("worker-") for name in _programs(source)], bool)


def _longer_chains(source: Captured, seed: int) -> tuple[list[list[int]], float]:
    """Each sample's chain, lengthened; and how long they were."""
    words, first = source.words, source.layout.chain
    chains: list[list[int]] = []
    for row in source.samples.tolist():
        at = int(source.at[row])
        count = int(words[at + first])
        chains.append(words[at + first + 1 : at + first + 1 + count].tolist())
    programs = _programs(source)
    kernel: set[int] = set()
    user: defaultdict[str, set[int]] = defaultdict(set)
    frames = 0
    for program, chain in zip(programs, chains, strict=True):
        frames += sum(address < _MARKER for address in chain)
        inside = chain.index(_USER) if _USER in chain else len(chain)
        kernel.update(address for address in chain[:inside] if _KERNEL <= address < _MARKER)
        # Callers may be no code at all, without frame pointers.
        user[program].update(address for address in chain[inside + 1 : inside + 2])
    mean = frames / len(chains)
    missing = max(0.0, FRAMES - mean)
    pool_kernel = sorted(kernel)
    pools = {program: sorted(found) for program, found in user.items()}
    made: dict[tuple[str, int], list[int]] = {}
    for program, chain in zip(programs, chains, strict=True):
        outermost = chain[-1] if chain else _MARKER
        if outermost >= _MARKER:
            continue
        of_kernel = _USER not in chain
        key = ("" if of_kernel else program, outermost >> 12)
        callers = made.get(key)
        if callers is None:
            chance = random.Random(f"{seed} {key}")
            pool = pool_kernel if of_kernel else pools[program]
            count = round(chance.uniform(0.5, 1.5) * missing)
            callers = made[key] = chance.choices(pool, k=count)
        chain += callers
    return chains, mean


def _new_share(chains: list[list[int]], samples: int) -> float:
    """Which share of so many samples must have a chain of its own, by the capture's growth."""
    quarter = len({tuple(chain) for chain in chains[: len(chains) // 4]})
    distinct = len({tuple(chain) for chain in chains})
    exponent = np.log(distinct / quarter) / np.log(4)
    grown = distinct * (samples / len(chains)) ** exponent
    return max(0.0, float(grown - distinct) / samples)


def write_large(
    source: Captured,
    path: Path,
    seed: int = 1,
    *,
    cpus: int = CPUS,
    seconds: int = SECONDS,
    walks: Walks | None = None,
) -> dict[str, str]:
    """Write the capture of a large node; what it is made of, in figures.

    With `walks` the threads of the program of `diversity.py` are on those stacks.
    """
    chance = np.random.default_rng(seed)
    chains, captured_frames = _longer_chains(source, seed)
    slots, slot_cpu, chosen, times = _lay_out(source, chance, cpus, seconds)
    share = 0.0 if walks is not None else _new_share(chains, len(slots))
    pool = _Pool.of(source, chains, chosen, walks, chance)
    # All records that go by time: samples and others, round by round and core by core.
    others = np.flatnonzero(
        (source.kind < FIRST_USER_KIND)
        & (source.time > 0)
        & ~np.isin(source.kind, (SAMPLE, LOST, LOST_SAMPLES))
    )
    other_cpu = (
        source.words[source.at[others] + source.size[others] - source.layout.other_cpu]
        & np.uint64(0xFFFFFFFF)
    ).astype(np.int64)
    leading = np.flatnonzero(
        (source.time == 0) & ~np.isin(source.kind, (SAMPLE, LOST, LOST_SAMPLES, FINISHED_ROUND))
    )
    time_ns = np.concatenate((slots, times[others]))
    cpu = np.concatenate((slot_cpu, other_cpu))
    turn = (time_ns - time_ns.min()) // (ROUND_S * SECOND_NS)
    order = np.lexsort((time_ns, cpu, turn))
    bounds = np.searchsorted(turn[order], np.arange(int(turn.max()) + 2))
    round_record = struct.pack("<IHH", FINISHED_ROUND, 0, 8)
    written = frames = 0
    with path.open("wb") as file:
        file.write(b"\0" * len(source.before))
        for row in leading.tolist():
            begin = int(source.at[row])
            end = begin + int(source.size[row])
            written += file.write(source.words[begin:end].tobytes())
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            part = order[begin:end]
            is_sample = part < len(slots)
            out, at, size = pool.lay(source, part, is_sample, others)
            in_sample, in_other = source.layout.time, size - source.layout.other_time
            out[at + np.where(is_sample, in_sample, in_other)] = time_ns[part].astype(np.uint64)
            out[at[is_sample] + source.layout.cpu] = cpu[part[is_sample]].astype(np.uint64)
            _make_new(out, at[is_sample], source.layout.chain, share, chance)
            frames += pool.count_frames(part[is_sample])
            written += file.write(out.tobytes())
            written += file.write(round_record)
        file.write(_moved_features(source, written - source.data_bytes, slots, cpus))
        head = list(source.head)
        head[6] = written
        file.seek(0)
        file.write(_HEADER.pack(*head) + source.before[_HEADER.size :])
    shape = {
        "samples": f"{len(slots):,}, of {len(chains):,} captured",
        "cores, rate, length": f"{cpus}, {HZ} Hz, {seconds} s",
        "other records": f"{len(others) + len(leading):,}",
        "frames per sample": f"{frames / len(slots):.1f}, of {captured_frames:.1f} captured",
        "samples made new": f"{share:.1%}",
        "file": f"{path.stat().st_size / 1e6:.0f} MB",
    }
    if walks is not None:
        shape["walks"] = f"{len(walks):,} distinct, in {pool.walking:.0%} of the samples"
    return shape


@dataclass(frozen=True, slots=True)
class _Pool:
    """What samples are made of: the head of a captured one, its chain or what of it is the
    kernel's, and a walk. Each is a place and a length in `words`.
    """

    words: U64
    head: I64  # by slot
    own: I64
    own_length: I64
    walk: I64
    walk_length: I64
    frames: I64  # how many there are, by slot
    walking: float  # share of the slots

    @classmethod
    def of(
        cls,
        source: Captured,
        chains: list[list[int]],
        chosen: I64,
        walks: Walks | None,
        chance: np.random.Generator,
    ) -> _Pool:
        laid, starts, lengths = _lay_chains(source, chains)
        first = source.layout.chain
        parts = [source.words, laid]
        head = starts[chosen] + len(source.words)
        own_length = lengths[chosen]
        walk = walk_length = np.zeros(len(chosen), np.int64)
        marks = np.array([sum(word >= _MARKER for word in chain) for chain in chains])
        frames = own_length - marks[chosen]
        walking = np.zeros(len(chosen), bool)
        if walks is not None:
            walker = _walkers(source)
            kernel = np.array([_USER in chain and chain.index(_USER) for chain in chains])
            walking = walker[chosen]
            parts.append(walks.words)
            number = walks.choose(int(walking.sum()), chance)
            walk, walk_length = walk.copy(), walk_length.copy()
            walk[walking] = walks.starts[number] + len(source.words) + len(laid)
            walk_length[walking] = walks.lengths[number]
            own_length = np.where(walking, kernel[chosen], own_length)
            inside = np.maximum(own_length - 1, 0)
            frames = np.where(walking, inside + walk_length - 1, frames)
        return cls(
            np.concatenate(parts),
            head,
            head + first + 1,
            own_length,
            walk,
            walk_length,
            frames,
            float(walking.mean()),
        )

    def lay(
        self, source: Captured, part: I64, is_sample: Bool, others: I64
    ) -> tuple[U64, I64, I64]:
        """Samples (by slot) and other records, one after the other; places and sizes."""
        first = source.layout.chain
        slot = np.where(is_sample, part, 0)
        other = others[np.where(is_sample, 0, part - len(self.head))] if len(others) else slot
        own = np.where(is_sample, self.own_length[slot], 0)
        walk = np.where(is_sample, self.walk_length[slot], 0)
        begins = np.stack(
            (np.where(is_sample, self.head[slot], source.at[other]), self.own[slot],
             self.walk[slot]), axis=1,
        ).ravel()  # fmt: skip
        lengths = np.stack(
            (np.where(is_sample, first + 1, source.size[other]), own, walk), axis=1
        ).ravel()
        ends = np.cumsum(lengths)
        out = self.words[np.arange(int(ends[-1])) + np.repeat(begins - (ends - lengths), lengths)]
        size = lengths.reshape(-1, 3).sum(axis=1)
        at = np.cumsum(size) - size
        mine = at[is_sample]
        out[mine] &= np.uint64((1 << 48) - 1)
        out[mine] |= (size[is_sample].astype(np.uint64) * np.uint64(8)) << np.uint64(48)
        out[mine + first] = (own + walk)[is_sample].astype(np.uint64)
        return out, at, size

    def count_frames(self, slots: I64) -> int:
        """Frames of these samples."""
        return int(self.frames[slots].sum())


def _lay_chains(source: Captured, chains: list[list[int]]) -> tuple[U64, I64, I64]:
    """The samples of the capture as they will be, one after the other: words, places, lengths."""
    first = source.layout.chain
    lengths = np.array([len(chain) for chain in chains], np.int64)
    starts = np.concatenate(([0], np.cumsum(lengths + first + 1)))
    pool = np.zeros(int(starts[-1]), np.uint64)
    for number, (row, chain) in enumerate(zip(source.samples.tolist(), chains, strict=True)):
        at, to = int(source.at[row]), int(starts[number])
        pool[to : to + first] = source.words[at : at + first]
        pool[to] = int(pool[to]) & ((1 << 48) - 1) | ((first + 1 + len(chain)) * 8) << 48
        pool[to + first] = len(chain)
        pool[to + first + 1 : to + first + 1 + len(chain)] = np.array(chain, np.uint64)
    return pool, starts, lengths


def _lay_out(
    source: Captured, chance: np.random.Generator, cpus: int, seconds: int
) -> tuple[I64, I64, I64, I64]:
    """Times and cores of the new samples, which captured one each is, and all records' times."""
    captured_ns = source.time[source.samples]
    period = SECOND_NS // HZ
    ticks = np.arange(seconds * HZ, dtype=np.int64) * period
    grid = (ticks[None, :] + chance.integers(0, period, cpus)[:, None]).ravel()
    grid = grid + chance.integers(-period // 50, period // 50, len(grid)) + int(captured_ns[0])
    slot_cpu = np.repeat(np.arange(cpus), len(ticks))
    order = np.argsort(grid, kind="stable")
    slots, slot_cpu = grid[order], slot_cpu[order]
    chosen = np.arange(len(slots)) * len(captured_ns) // len(slots)
    # What was between two captured samples stays between the last of the one and the other.
    numbers = np.arange(len(captured_ns))
    opening = slots[np.minimum(np.searchsorted(chosen, numbers), len(slots) - 1)]
    closing = slots[np.maximum(np.searchsorted(chosen, numbers, "right") - 1, 0)]
    before = np.searchsorted(captured_ns, source.time, "right") - 1
    inner = np.clip(before, 0, len(numbers) - 2)
    width = np.maximum(captured_ns[inner + 1] - captured_ns[inner], 1)
    part = (source.time - captured_ns[inner]) / width
    times = closing[inner] + (part * (opening[inner + 1] - closing[inner])).astype(np.int64)
    early, late = before < 0, before >= len(numbers) - 1
    times[early] = np.maximum(1, slots[0] - captured_ns[0] + source.time[early] - 1)
    times[late] = slots[-1] + 1 + source.time[late] - captured_ns[-1]
    return slots, slot_cpu, chosen, times


def _make_new(out: U64, at: I64, first: int, share: float, chance: np.random.Generator) -> None:
    """Move one address of some samples by a few bytes."""
    taken = at[chance.random(len(at)) < share]
    count = out[taken + first].astype(np.int64)
    taken, count = taken[count > 0], count[count > 0]
    place = taken + first + 1 + (chance.random(len(taken)) * count).astype(np.int64)
    place = place[out[place] < np.uint64(_MARKER)]
    out[place] += chance.integers(1, 12, len(place)).astype(np.uint64)


def _moved_features(source: Captured, by: int, slots: I64, cpus: int) -> bytes:
    """What follows the data: places moved, times and number of cores as they are now."""
    bits = source.head[9]
    numbers = [n for n in range(len(bits) * 8) if bits[n // 8] >> (n % 8) & 1]
    after = bytearray(source.after)
    origin = source.data_at + source.data_bytes
    for position, number in enumerate(numbers):
        start, _ = struct.unpack_from("<QQ", after, 16 * position)
        struct.pack_into("<Q", after, 16 * position, start + by)
        if number == SAMPLE_TIME:
            struct.pack_into("<QQ", after, start - origin, int(slots[0]), int(slots[-1]))
        elif number == NRCPUS:
            struct.pack_into("<II", after, start - origin, cpus, cpus)
    return bytes(after)


# -- twelve hours ----------------------------------------------------------------


def repeat_archive(archives: list[Path], target: Path, copies: int, period_s: int = SECONDS) -> int:
    """The sealed segments of some archives in turn, each so much later; how many segments."""
    sealed = target / "segments"
    sealed.mkdir(parents=True, mode=0o700)
    (target / "open").mkdir(mode=0o700)
    shutil.copy(archives[0] / "archive.json", target)
    described = [
        [
            (folder, json.loads((folder / "segment.json").read_text()))
            for folder in sorted((archive / "segments").iterdir())
        ]
        for archive in archives
    ]
    start_ns = described[0][0][1]["wall_from_ns"]
    made = 0
    for copy in range(copies):
        variant = described[copy % len(described)]
        by_ns = start_ns - variant[0][1]["wall_from_ns"] + copy * period_s * SECOND_NS
        for folder, about in variant:
            moved = json.loads(json.dumps(about))
            made += 1
            moved["start"]["wall_ns"] += by_ns
            moved["start"]["name"] = name = name_segment(made, moved["start"]["wall_ns"])
            moved["clock"] = [[since, offset + by_ns] for since, offset in moved["clock"]]
            for each in (moved, *moved["gaps"]):
                for key in (
                    ("wall_from_ns", "wall_to_ns") if each is moved else ("from_ns", "to_ns")
                ):
                    each[key] += by_ns
            (sealed / name).mkdir(mode=0o700)
            for file in folder.glob("*.parquet"):
                os.link(file, sealed / name / file.name)
            (sealed / name / "segment.json").write_text(json.dumps(moved, separators=(",", ":")))
    return made


# -- all of it -------------------------------------------------------------------


def prepare_diverse(
    folder: Path, stacks: int, *, cpus: int, seconds: int, capture_s: float, seed: int = 1
) -> tuple[Path, dict[str, str]]:
    """A capture with so many distinct stacks; one that is there already is taken as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    real, program = folder / "walking.data", build_program(folder)
    if not real.exists():
        with running(program):
            _record(real, capture_s, CAPTURE_HZ)
    path = folder / f"diverse-{cpus}-{seconds}-{stacks}-{seed}.data"
    about = path.with_suffix(".json")
    if not path.exists():
        walks = Walks.make(read_functions(program), stacks, seed)
        source = Captured(real)
        source.keep_mostly(_walkers(source), OTHERS)
        part = path.with_suffix(".part")
        shape = write_large(source, part, seed, cpus=cpus, seconds=seconds, walks=walks)
        about.write_text(json.dumps(shape))
        part.rename(path)
    return path, json.loads(about.read_text())


def prepare(folder: Path, variants: int, *, cpus: int, seconds: int, capture_s: float) -> Prepared:
    """The captures in `folder`; those that are there already are taken as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    real, truth = folder / "real.data", folder / "truth.data"
    if not real.exists():
        record_here(real, capture_s, CAPTURE_HZ)
    if not truth.exists():
        record_here(truth, max(5.0, capture_s / 3), HZ)
    paths = [folder / f"large-{cpus}-{seconds}-{number}.data" for number in range(1, variants + 1)]
    about = folder / f"large-{cpus}-{seconds}.json"
    source = None
    for number, path in enumerate(paths, 1):
        if not path.exists():
            source = source or Captured(real)
            part = path.with_suffix(".part")
            shape = write_large(source, part, number, cpus=cpus, seconds=seconds)
            part.rename(path)
            if number == 1:
                about.write_text(json.dumps(shape))
    return Prepared(truth, paths, json.loads(about.read_text()))
