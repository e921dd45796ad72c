"""The rings of a large node, made of what this machine's held: records with real shapes.

Two captures are taken with the recorder's own `Sampling`: one of about a
hundred lasting processes of a dozen kinds (those of
`tests/symbols/test_perf_agreement.py`), at a high rate so that there
is variety, and one of the load of many short processes, at 97 Hz. Then all of
them are stopped, but kept alive, so that `/proc` still tells what they mapped.

`Node.second` lays the captured records out anew, over all cores of a large
node. What is real: every address, every process, mapping and file, the order of
each process's samples, the births, names, mappings and ends of short processes.
What is not is said in `WHAT_IS_SYNTHETIC`, which stands with the results.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tests.symbols import test_perf_agreement as agreement

from benchmarks.load import many_short_processes
from benchmarks.measured import find_descendants
from benchmarks.walkers import OTHERS, Walkers
from nodescope.arrays import I64, U64, Bool
from nodescope.perf.decode import COMM, EXIT, FORK, MMAP2, SAMPLE, Chunk
from nodescope.recorder.samples.profiler import Profiler
from nodescope.recorder.samples.rings import Sampling
from nodescope.sources.node.identity import read_core_lives

Mapping = tuple[int, int, int, tuple[int, int], int, str]
Place = tuple[str, int]  # a file and an offset in it

LASTING = 96  # processes
CAPTURE_HZ = 1997  # of the lasting ones
FRAMES = 25  # per sample, on average
FORKS_PER_S = 200
RUN = 20  # samples a process stays on a core, on average
SEGMENT_S = 120
FIRST_PID = 1_500_000  # of short processes; above what is alive here
WHAT_IS_SYNTHETIC = tuple(
    " ".join(text.split())
    for text in f"""
    Synthetic: which core a record is on, and its time. A lasting process stays on a core for
    {RUN} samples on average, in the order it was sampled in.

    Synthetic: depth. Captured chains are lengthened to {FRAMES} frames on average by callers of
    the same program, kernel threads by kernel functions; chains with the same outermost
    page of code get the same callers, in all processes of a program.

    Synthetic: novelty. Distinct chains, and distinct stacks of functions, grow with the number of
    samples by power laws; they are fitted to the capture and extrapolated to a segment of the
    large node. As many samples are made new: an address is exchanged for one captured nearby (a
    new chain, the same functions most often) or for any other of the process (a new stack).

    Synthetic: the pids of short processes, new in every repetition, and their pace:
    {FORKS_PER_S} births a second. Their chains are as captured.

    Real: every address and mapping; all processes sampled are alive and stopped meanwhile, or are
    born and end in the data.
    """.strip().split("\n\n")
)

_MARKER = np.uint64(2**64 - 4095)
_NEAR = np.uint64(48)  # bytes: mostly within a function
_LOW, _32, _48 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(48)


@dataclass(frozen=True, slots=True)
class Records:
    """Records one after the other as words, with the place and length of each."""

    words: U64
    at: I64
    length: I64
    kind: I64
    cpu: I64
    time_ns: I64

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Records:
        """Some of the records, over the same words."""
        return Records(
            self.words,
            self.at[rows],
            self.length[rows],
            self.kind[rows],
            self.cpu[rows],
            self.time_ns[rows],
        )

    def low(self, word: int) -> I64:
        """The lower half of a word of each record."""
        return (self.words[self.at + word] & _LOW).astype(np.int64)

    def high(self, word: int) -> I64:
        """The upper half of a word of each record."""
        return (self.words[self.at + word] >> _32).astype(np.int64)


# -- capturing ---------------------------------------------------------------


@contextmanager
def captured(seconds: int, *, cpus: int, frequency_hz: int) -> Iterator[Node]:
    """A large node made of this one; the processes it is made of live as long as the context."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nodescope-bench-")))
        lasting = stack.enter_context(_lasting_processes(folder))
        time.sleep(3)
        chunks, cgroup = _capture(seconds, CAPTURE_HZ)
        for process in lasting:
            os.killpg(process.pid, signal.SIGSTOP)
        before = set(find_descendants(os.getpid()))
        stack.enter_context(many_short_processes())
        time.sleep(1)
        short_chunks, _ = _capture(max(5, seconds // 2), frequency_hz)
        for pid in set(find_descendants(os.getpid())) - before:
            try:
                os.kill(pid, signal.SIGSTOP)
            except ProcessLookupError:
                pass  # a short one, over already
        time.sleep(0.2)
        yield Node(
            _Lasting(chunks, cgroup, cpus * frequency_hz * SEGMENT_S),
            _Short(_parse(short_chunks)),
            cgroup,
            cpus,
            frequency_hz,
        )


@contextmanager
def _lasting_processes(folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    commands = agreement._commands(folder)
    processes = [
        subprocess.Popen(
            commands[number % len(commands)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            start_new_session=True,
        )
        for number in range(LASTING)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # its work was done
            process.wait()


def _capture(seconds: float, frequency_hz: int) -> tuple[list[Chunk], bool]:
    """What the rings of this machine hold in a while; and whether with cgroups."""
    lives = read_core_lives()
    sampling = Sampling(frequency_hz, 4 << 20, min(lives))
    chunks: list[Chunk] = []
    try:
        sampling.follow(lives)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.2)
            chunks += sampling.drain()
    finally:
        sampling.close()
    return chunks, sampling.sampler.cgroup


def _parse(chunks: list[Chunk]) -> Records:
    """The records of all rings, in order of time."""
    words = np.frombuffer(b"".join(chunk.data for chunk in chunks), np.uint64)
    starts = np.cumsum([0, *(len(chunk.data) for chunk in chunks)])
    at = np.concatenate(
        [
            (np.asarray(chunk.offsets, np.int64) + start) >> 3
            for chunk, start in zip(chunks, starts, strict=False)
        ]
    )
    cpu = np.repeat([chunk.cpu for chunk in chunks], [len(chunk.offsets) for chunk in chunks])
    kind = (words[at] & _LOW).astype(np.int64)
    length = (words[at] >> _48).astype(np.int64) >> 3
    known = np.isin(kind, (SAMPLE, COMM, EXIT, FORK, MMAP2))
    at, cpu, kind, length = at[known], cpu[known], kind[known], length[known]
    # A sample's time is its third word; all other records end with theirs.
    time_ns = words[np.where(kind == SAMPLE, at + 2, at + length - 1)].astype(np.int64)
    return Records(words, at, length, kind, cpu, time_ns).take(np.argsort(time_ns, kind="stable"))


def _is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


# -- lasting processes -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Growth:
    """How distinct things grow with the number of samples: by a power law."""

    samples: int
    distinct: int
    exponent: float

    @classmethod
    def fit(cls, samples: int, distinct: int, in_first_quarter: int) -> Growth:
        return cls(samples, distinct, math.log(distinct / in_first_quarter) / math.log(4))

    def at(self, samples: int) -> float:
        """How many there would be in so many samples."""
        return self.distinct * math.pow(samples / self.samples, self.exponent)

    def new_share(self, samples: int) -> float:
        """Which share of so many samples must be new, beside those captured, to get there."""
        return max(0.0, (self.at(samples) - self.distinct) / samples)


def _fit_stacks(chunks: list[Chunk], cgroup: bool) -> Growth:
    """How distinct stacks of functions grow, by the recorder's own naming."""
    profiler = Profiler(Path("/proc"), 100_000)
    found, samples = [], 0
    for part in (chunks[: len(chunks) // 4], chunks[len(chunks) // 4 :]):
        batch, rows = profiler.process(part, cgroup=cgroup)
        found.append(len(rows["profile"]["stack"]))
        samples += len(batch.samples)
    profiler.close()
    return Growth.fit(samples, sum(found), found[0])


class _Lasting:
    """Samples of processes that live on, lengthened, sorted by process and time."""

    def __init__(self, chunks: list[Chunk], cgroup: bool, segment_samples: int) -> None:
        records = _parse(chunks)
        samples = records.take(records.kind == SAMPLE)
        pids = samples.low(1)
        alive = {pid for pid in np.unique(pids).tolist() if _is_alive(pid)}
        samples = samples.take(np.isin(pids, list(alive)))
        samples = samples.take(np.lexsort((samples.time_ns, samples.low(1))))
        self.pid = samples.low(1)
        chains = [
            samples.words[at + 4 : at + 4 + int(samples.words[at + 3])].tolist()
            for at in samples.at.tolist()
        ]
        self.captured_frames = float(np.mean([_count_frames(chain) for chain in chains]))
        self.segment_samples = segment_samples
        self.chains = self._fit_chains(chains, samples.time_ns)
        self.stacks = _fit_stacks(chunks, cgroup)
        self.new_chains = self.chains.new_share(segment_samples)
        self.new_stacks = min(self.new_chains, self.stacks.new_share(segment_samples))
        self._collect_addresses(chains)
        self._lay_out(samples, chains, cgroup)
        self.first_of_pid = np.searchsorted(self.pid, self.pid)
        self.count_of_pid = np.searchsorted(self.pid, self.pid, "right") - self.first_of_pid

    def _fit_chains(self, chains: list[list[int]], times: I64) -> Growth:
        keys = [(pid, *chain) for pid, chain in zip(self.pid.tolist(), chains, strict=True)]
        in_time = [keys[row] for row in np.argsort(times, kind="stable")]
        return Growth.fit(len(keys), len(set(keys)), len(set(in_time[: len(keys) // 4])))

    def _collect_addresses(self, chains: list[list[int]]) -> None:
        """The kernel's addresses, and those of each process."""
        kernel: set[int] = set()
        user: defaultdict[int, set[int]] = defaultdict(set)
        for pid, chain in zip(self.pid.tolist(), chains, strict=True):
            for address in chain:
                if address < 1 << 63:
                    user[pid].add(address)
                elif address < int(_MARKER):
                    kernel.add(address)
        self.kernel = np.array(sorted(kernel), np.uint64)
        self.user = {pid: np.array(sorted(found), np.uint64) for pid, found in user.items()}

    def _lay_out(self, samples: Records, chains: list[list[int]], cgroup: bool) -> None:
        callers = _Callers(self.kernel, self.user, max(0.0, FRAMES - self.captured_frames))
        words: list[int] = []
        at, length, frames = [], [], 0
        for row, (pid, chain) in enumerate(zip(self.pid.tolist(), chains, strict=True)):
            longer = [*chain, *callers.of(pid, chain)]
            place = int(samples.at[row])
            size = 4 + len(longer) + cgroup
            head = int(samples.words[place]) & ((1 << 48) - 1) | (size * 8) << 48
            at.append(len(words))
            length.append(size)
            frames += _count_frames(longer)
            words += [head, int(samples.words[place + 1]), 0, len(longer), *longer]
            if cgroup:
                words.append(int(samples.words[place + int(samples.length[row]) - 1]))
        self.words = np.array(words, np.uint64)
        self.at, self.length = np.array(at, np.int64), np.array(length, np.int64)
        self.frames = frames / len(chains)

    def exchange(self, words: U64, at: I64, chance: np.random.Generator) -> None:
        """Make some of the chains new, and some of these new stacks."""
        draw = chance.random(len(at))
        for place, drawn in zip(at.tolist(), draw.tolist(), strict=True):
            if drawn >= self.new_chains:
                continue
            chain = words[place + 4 : place + 4 + int(words[place + 3])]
            code = np.flatnonzero(chain < _MARKER)
            if not len(code):
                continue
            frame = int(code[chance.integers(len(code))])
            pool = self.kernel
            if chain[frame] < 1 << 63:
                pool = self.user[int(words[place + 1] & _LOW)]
            if drawn < self.new_stacks:
                chain[frame] = pool[chance.integers(len(pool))]
            else:
                low = np.searchsorted(pool, max(chain[frame], _NEAR) - _NEAR)
                high = np.searchsorted(pool, chain[frame] + _NEAR)
                if low < high:  # else a caller of another process of the program: nothing near
                    chain[frame] = pool[chance.integers(low, high)]


class _Callers:
    """More callers for chains: the same for all chains of a program that begin alike."""

    def __init__(self, kernel: U64, user: dict[int, U64], missing: float) -> None:
        self._kernel, self._missing = kernel, missing
        self._maps: dict[int, list[Mapping]] = {}
        self._program: dict[int, str] = {}
        self._places: dict[str, list[Place]] = {}  # of a program: where its code was seen
        self._made: dict[tuple[int, int], list[int]] = {}
        for pid, addresses in user.items():
            try:
                self._program[pid] = os.readlink(f"/proc/{pid}/exe")
                self._maps[pid] = list(agreement.Processes()._read_maps(pid))
            except OSError:
                continue
            found = (self._place(pid, address) for address in addresses.tolist())
            self._places.setdefault(self._program[pid], [place for place in found if place])

    def of(self, pid: int, chain: list[int]) -> list[int]:
        """What to append to a chain of that process."""
        code = [word for word in chain if word < int(_MARKER)]
        if not code or not self._missing:
            return []
        key = (pid, code[-1] >> 12)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(pid, code[-1])
        return made

    def _make(self, pid: int, outermost: int) -> list[int]:
        place = self._place(pid, outermost)
        if outermost >= 1 << 63:
            chance = random.Random(outermost >> 12)
            return chance.choices(self._kernel.tolist(), k=_poisson(chance, self._missing))
        # The same file and page in all processes of the program, wherever it is mapped.
        page = (place[0], place[1] >> 12) if place else ("", 0)
        chance = random.Random(f"{self._program.get(pid)} {page}")
        places = self._places.get(self._program.get(pid, ""), [])
        if not places:
            return []
        wanted = chance.choices(places, k=_poisson(chance, self._missing))
        found = (self._address(pid, each) for each in wanted)
        return [address for address in found if address is not None]

    def _place(self, pid: int, address: int) -> Place | None:
        for start, end, offset, _device, _inode, path in self._maps.get(pid, ()):
            if start <= address < end and path:
                return path, address - start + offset
        return None

    def _address(self, pid: int, place: Place) -> int | None:
        path, at = place
        for start, end, offset, _device, _inode, mapped in self._maps[pid]:
            if mapped == path and offset <= at < offset + end - start:
                return at - offset + start
        return None


def _poisson(chance: random.Random, mean: float) -> int:
    """Knuth's way; means are small here."""
    limit, product, count = math.exp(-mean), chance.random(), 0
    while product > limit:
        product *= chance.random()
        count += 1
    return count


def _count_frames(chain: list[int]) -> int:
    return sum(word < int(_MARKER) for word in chain)


# -- short processes ---------------------------------------------------------


class _Short:
    """Records of processes that were born and ended in the capture."""

    def __init__(self, records: Records) -> None:
        forks, exits = records.take(records.kind == FORK), records.take(records.kind == EXIT)
        ended = set(exits.low(2).tolist())
        everyone = set(forks.low(2).tolist())
        known: dict[int, int] = {}  # thread → number
        owners = {
            pid
            for pid in np.unique(records.low(1)).tolist()
            if pid not in everyone and _is_alive(pid)
        }
        births = zip(
            forks.low(2).tolist(), forks.low(1).tolist(), forks.high(1).tolist(), strict=True
        )
        for tid, pid, parent in births:
            parented = parent in known or parent in owners
            if parented and tid in ended and (pid == tid or pid in known or pid in owners):
                known[tid] = len(known)
        self.born = len(known)
        is_task = np.isin(records.kind, (FORK, EXIT))
        tid = np.where(is_task, records.low(2), records.high(1))
        pid = records.low(1)
        kept = np.isin(tid, list(known)) | (
            np.isin(pid, list(owners)) & ~is_task & ~np.isin(tid, list(everyone))
        )
        kept &= np.isin(pid, [*known, *owners])
        self.records = records.take(kept)
        self.number = np.full(max(known, default=0) + 1, -1, np.int64)
        self.number[list(known)] = list(known.values())
        first = int(records.time_ns[0])
        captured_s = (int(records.time_ns[-1]) - first) / 1e9
        self.captured_forks_per_s = self.born / captured_s
        self.cycle_s = self.born / FORKS_PER_S
        stretch = self.cycle_s / captured_s
        self.at_s = (self.records.time_ns - first) / 1e9 * stretch

    def within(self, from_s: float, to_s: float) -> tuple[npt.NDArray[np.intp], I64]:
        """Which records fall into a time, and in which repetition."""
        rows, repetitions = [], []
        for repetition in range(int(from_s // self.cycle_s), int(to_s // self.cycle_s) + 1):
            begin = repetition * self.cycle_s
            low, high = np.searchsorted(self.at_s, (from_s - begin, to_s - begin))
            rows.append(np.arange(low, high))
            repetitions.append(np.full(high - low, repetition, np.int64))
        return np.concatenate(rows), np.concatenate(repetitions)

    def rename(self, words: U64, at: I64, rows: npt.NDArray[np.intp], repetition: I64) -> None:
        """Give the processes of a repetition their own pids, in records already laid out."""
        halves = words.view(np.uint32)
        kind, length = self.records.kind[rows], self.records.length[rows]
        is_task, is_sample = np.isin(kind, (FORK, EXIT)), kind == SAMPLE
        last = at + length - 2  # the sample_id that ends all but samples: pid and tid, then time
        places = [(at + 1, is_sample | ~is_sample), (at + 2, is_task), (last, ~is_sample)]
        for place, wanted in places:
            for half in (0, 1):
                where = place[wanted] * 2 + half
                old = halves[where].astype(np.int64)
                number = self.number[np.minimum(old, len(self.number) - 1)]
                number[old >= len(self.number)] = -1
                new = FIRST_PID + number + repetition[wanted] * self.born
                halves[where] = np.where(number >= 0, new, old).astype(np.uint32)


# -- a large node ------------------------------------------------------------


class Node:
    """What the rings of a large node would hold, second by second."""

    def __init__(
        self, lasting: _Lasting, short: _Short, cgroup: bool, cpus: int, frequency_hz: int
    ) -> None:
        self.cgroup = cgroup
        self._lasting, self._short = lasting, short
        self._cpus, self._hz = cpus, frequency_hz
        self._chance = np.random.default_rng(97)
        self._phase = self._chance.random(cpus)
        self._words = np.concatenate((lasting.words, short.records.words))
        self._short_at = short.records.at + len(lasting.words)
        self._bytes = self._records = self._seconds = 0
        self._walkers: Walkers | None = None
        self._walk_at = np.empty(0, np.int64)

    @property
    def segment_samples(self) -> int:
        """How many samples a segment has."""
        return self._cpus * self._hz * SEGMENT_S

    def diversify(self, walkers: Walkers) -> Node:
        """The same node, most of whose samples are those of `walkers`."""
        node = Node(self._lasting, self._short, self.cgroup, self._cpus, self._hz)
        node._walkers = walkers
        node._walk_at = walkers.at + len(node._words)
        node._words = np.concatenate((node._words, walkers.words))
        return node

    def describe(self) -> dict[str, str]:
        """Its shape, for the results."""
        lasting, short = self._lasting, self._short
        seconds = max(1, self._seconds)
        return {
            "captured of lasting processes": f"{len(lasting.at):,} samples of "
            f"{len(np.unique(lasting.pid))} processes, {lasting.captured_frames:.1f} frames on "
            f"average, lengthened to {lasting.frames:.1f}",
            "distinct chains of addresses": _grown(lasting.chains, lasting, lasting.new_chains),
            "distinct stacks of functions": _grown(lasting.stacks, lasting, lasting.new_stacks),
            "captured of short processes": f"{short.born:,} births, "
            f"{short.captured_forks_per_s:.0f} per second, {len(short.records.at):,} records",
            "fed": f"{self._records / seconds:,.0f} records and "
            f"{self._bytes / seconds / 1e6:.2f} MB per second, {FORKS_PER_S} births per second",
        } | self._describe_walkers()

    def _describe_walkers(self) -> dict[str, str]:
        if self._walkers is None:
            return {}
        distinct, frames = self._walkers.distinct, self._walkers.frames
        text = f"{1 - OTHERS:.0%} of the samples, on {distinct:,} distinct stacks in a segment, "
        return {"walks": text + f"{frames:.1f} frames on average"}

    def second(self, started_ns: int, number: int) -> tuple[list[bytes], int]:
        """What each ring holds of a second, and how many samples that is in all."""
        rows, repetition = self._short.within(number, number + 1)
        records = self._short.records
        times = self._short.at_s[rows] + repetition * self._short.cycle_s
        # Two cores were captured; the pair moves on over the large node, around once a second.
        cpu = records.cpu[rows] % 2 + 2 * (
            (times * self._cpus / 2).astype(np.int64) % (self._cpus // 2)
        )
        time_ns = started_ns + (times * 1e9).astype(np.int64)
        short_samples = np.bincount(cpu[records.kind[rows] == SAMPLE], minlength=self._cpus)
        slots, slot_cpu, slot_ns = self._schedule(started_ns, number, short_samples)

        walks, own_at, own_length = self._choose(slots)
        at = np.concatenate((own_at, self._short_at[rows]))
        length = np.concatenate((own_length, records.length[rows]))
        cpu, time_ns = np.concatenate((slot_cpu, cpu)), np.concatenate((slot_ns, time_ns))
        order = np.lexsort((time_ns, cpu))
        at, length, cpu, time_ns = at[order], length[order], cpu[order], time_ns[order]
        ends = np.cumsum(length)
        starts = ends - length
        words = self._words[np.repeat(at - starts, length) + np.arange(int(ends[-1]))]

        is_short = order >= len(slots)
        mine = rows[order[is_short] - len(slots)]
        own = order[~is_short]
        is_walk, own_starts = walks[own], starts[~is_short]
        self._lasting.exchange(words, own_starts[~is_walk], self._chance)
        if self._walkers is not None:
            runs = self._lasting.pid[slots[own[is_walk]]]
            self._walkers.name(words, own_starts[is_walk], runs)
        self._short.rename(words, starts[is_short], mine, repetition[order[is_short] - len(slots)])
        kind = np.full(len(at), SAMPLE)
        kind[is_short] = records.kind[mine]
        stamps = time_ns.astype(np.uint64)
        is_sample, is_task = kind == SAMPLE, np.isin(kind, (FORK, EXIT))
        words[starts[is_sample] + 2] = stamps[is_sample]
        words[starts[is_task] + 3] = stamps[is_task]
        words[ends[~is_sample] - 1] = stamps[~is_sample]

        bounds = np.concatenate(([0], ends))[np.searchsorted(cpu, np.arange(self._cpus + 1))]
        rings = [words[low:high].tobytes() for low, high in pairwise(bounds)]
        self._bytes += words.nbytes
        self._records += len(at)
        self._seconds += 1
        return rings, int(is_sample.sum())

    def _choose(self, slots: npt.NDArray[np.intp]) -> tuple[Bool, I64, I64]:
        """Which samples are of walkers; the place and length of all samples' records."""
        walks = np.zeros(len(slots), bool)
        at, length = self._lasting.at[slots], self._lasting.length[slots]
        if self._walkers is not None:
            walks = self._chance.random(len(slots)) >= OTHERS
            chosen = self._walkers.take(int(walks.sum()))
            at[walks], length[walks] = self._walk_at[chosen], self._walkers.length[chosen]
        return walks, at, length

    def _schedule(
        self, started_ns: int, number: int, taken: I64
    ) -> tuple[npt.NDArray[np.intp], I64, I64]:
        """Captured samples for the second, their cores and times; fewer where some are taken."""
        shape = (self._cpus, self._hz)
        begins = self._chance.random(shape) < 1 / RUN
        begins[:, 0] = True
        place = np.arange(begins.size).reshape(shape)
        run_start = np.maximum.accumulate(np.where(begins, place, 0), axis=1)
        first = self._chance.integers(len(self._lasting.at), size=begins.size)[run_start]
        low = self._lasting.first_of_pid[first]
        rows = low + (first - low + place - run_start) % self._lasting.count_of_pid[first]
        seconds = number + (np.arange(self._hz) + self._phase[:, None]) / self._hz
        kept = self._chance.random(shape).argsort(axis=1).argsort(axis=1) >= taken[:, None]
        cpu = np.broadcast_to(np.arange(self._cpus)[:, None], shape)
        times = started_ns + (seconds * 1e9).astype(np.int64)
        return rows[kept], cpu[kept], times[kept]


def _grown(growth: Growth, lasting: _Lasting, new_share: float) -> str:
    return (
        f"{growth.distinct:,} captured, growing with samples to the power of "
        f"{growth.exponent:.2f}: {growth.at(lasting.segment_samples):,.0f} in a segment of the "
        f"large node; {new_share:.1%} of its samples made new"
    )
