"""From chains of addresses to paths of functions.

Chains recur, so each is resolved once: a kernel chain is known by a hash of its
addresses, a user chain by that, its address space and what was mapped. Those of processes that
live and die within a batch never come back at the same addresses (ASLR), so
they are not remembered, and recognised by the functions they turn out to be.
A chain that is not worth naming as a whole (`folding`) is named in part, and may be named
whole when it is met again.

Numbers of frames last until `restart` finds too many; numbers of paths until
the next `restart`, which the recorder calls with every new segment.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from nodescope.arrays import I32, I64, U64, Bool
from nodescope.numbering import Numbers, Rows, Sequences, distinct, gather, group
from nodescope.perf.address_space import Module
from nodescope.perf.decode import Chains, RingSamples
from nodescope.perf.folding import Choice, ChoosesStacks, NewChains, cut
from nodescope.perf.processes import Attribution, Processes
from nodescope.records.tables import FOLDED
from nodescope.symbols.unresolved import Reason

_MAX_FRAMES = 200_000
_MAX_KNOWN_PLACES = 400_000
_MAX_FOLDED = 1 << 17  # chains that were folded; more are as if they had not been met
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FINISH = np.uint64(0xBF58476D1CE4E5B9)
_29, _48 = np.uint64(29), np.uint64(48)
_OFFSET_MASK = np.uint64((1 << 48) - 1)

KERNEL_MODULE = "[kernel]"
UNKNOWN = "[unknown]"


class Frame(NamedTuple):
    """A function, or as much as is known of one."""

    module: str
    name: str
    kernel: bool


class NamesFunctions(Protocol):
    """A binary, a JIT's map, the vdso: anything that names code by its offset."""

    @property
    def module(self) -> str:
        """What to call the whole."""

    def resolve(self, file_offsets: U64) -> list[str]:
        """A name for each offset."""


class OpensModules(Protocol):
    """Finds what names the code of a module."""

    def open_module(self, module: Module) -> NamesFunctions:
        """What names the code of `module`; never raises."""


class NamesKernel(Protocol):
    """The kernel's symbols; `generation` changes whenever rows do."""

    @property
    def generation(self) -> int:
        """Counts the times the rows have changed."""

    def restart(self) -> None:
        """Nothing that was looked up is remembered any more."""

    def find_eras(self, chains: Chains, times_ns: I64) -> tuple[I64, I64]:
        """Chains through code that came or went since `restart`, and how often it had by then."""

    def lookup(self, addresses: U64, times_ns: I64) -> I64:
        """The row of what was at each address at that time, or -1."""

    def frame(self, row: int) -> tuple[str, str]:
        """Module and name of a row."""


@dataclass(frozen=True, slots=True)
class StackPaths:
    """For each sample, the numbers of its user and kernel path; 0 is the empty path."""

    user: I64
    kernel: I64
    folded: Bool  # whether the user path lacks its middle


class _MakesPaths(Protocol):
    """Names some of the new chains."""

    def __call__(self, new: Rows, outer: int | None) -> I64:
        """Return the paths of these chains; folded, if `outer` functions are to be left."""


class Stacks:
    """Resolves samples, and numbers frames and paths."""

    def __init__(
        self,
        processes: Processes,
        modules: OpensModules,
        kernel: NamesKernel | None,
        choosing: ChoosesStacks | None = None,
    ) -> None:
        """Without `choosing` every stack is kept whole."""
        self._processes = processes
        self._modules = modules
        self._kernel = kernel
        self._choosing = choosing
        self.unnamed: Counter[Reason] = Counter()  # of what is in no module
        self.frames: list[Frame] = []
        self.paths = Sequences()  # of frames, outermost first; the first is empty
        self._frame_numbers: dict[Frame, int] = {}
        self._number_marks()
        self._known_places = Numbers()  # module and offset → frame
        self._kernel_frames: I32 = np.empty(0, np.int32)  # kernel symbol → frame
        self._kernel_generation = -1
        self._path_numbers = Numbers()  # hash of its frames → path
        self._kernel_paths = Numbers()
        self._user_paths = Numbers()
        self._folded_paths = Numbers()  # of chains that may be named whole another time

    def restart(self) -> None:
        """Forget paths; and frames, modules and names where they have become many."""
        self.paths = Sequences()
        self._path_numbers.clear()
        self._kernel_paths.clear()
        self._user_paths.clear()
        self._folded_paths.clear()
        if self._kernel is not None:
            self._kernel.restart()
        if len(self.frames) > _MAX_FRAMES or len(self._known_places) > _MAX_KNOWN_PLACES:
            self._known_places.clear()
            self._processes.forget_names()
            self.frames = []
            self._frame_numbers.clear()
            self._number_marks()
            self._kernel_frames = np.empty(0, np.int32)
            self._kernel_generation = -1

    def resolve(self, samples: RingSamples, attribution: Attribution) -> StackPaths:
        """The paths of all samples of a batch."""
        user, folded = self._resolve_user(samples, attribution)
        return StackPaths(user, self._resolve_kernel(samples), folded)

    # -- kernel ------------------------------------------------------------

    def _resolve_kernel(self, samples: RingSamples) -> I64:
        chains, times_ns = samples.kernel, samples.time_ns
        if self._kernel is not None and self._kernel.generation != self._kernel_generation:
            self._kernel_generation = self._kernel.generation
            self._kernel_frames = np.empty(0, np.int32)
            self._kernel_paths.clear()

        def make(rows: Rows) -> I64:
            some = _take(chains, rows)
            times = np.repeat(times_ns[rows], some.lengths)
            return self._number_paths(self._kernel_frames_of(some.addresses, times), some)

        keys = _hash(chains)
        if self._kernel is not None:
            # Through code that comes and goes, the same addresses are another path later.
            rows, eras = self._kernel.find_eras(chains, times_ns)
            keys[rows] += eras.astype(np.uint64) * _GOLDEN
        return self._kernel_paths.find(keys, make)

    def _kernel_frames_of(self, addresses: U64, times_ns: I64) -> I64:
        rows = np.full(len(addresses), -1, np.int64)
        if self._kernel is not None:
            rows = self._kernel.lookup(addresses, times_ns)
            if self._kernel.generation != self._kernel_generation:  # it was read again just now
                self._kernel_frames = np.empty(0, np.int32)
        frames = np.empty(len(addresses), np.int64)
        named = rows >= 0
        highest = int(rows.max(initial=-1))
        if highest >= len(self._kernel_frames):
            more = np.full(highest + 1 - len(self._kernel_frames), -1, np.int32)
            self._kernel_frames = np.concatenate((self._kernel_frames, more))
        met = rows[named]
        for row in distinct(met[self._kernel_frames[met] < 0]).tolist():
            assert self._kernel is not None
            module, name = self._kernel.frame(row)
            self._kernel_frames[row] = self._number(Frame(module, name, True))
        frames[named] = self._kernel_frames[rows[named]]
        known = len(self.frames)
        frames[~named] = [
            self._number(Frame(KERNEL_MODULE, f"+{address:#x}", True))
            for address in addresses[~named].tolist()
        ]
        why = Reason.NO_KERNEL_SYMBOLS if self._kernel is None else Reason.NO_KERNEL_FUNCTION
        self.unnamed[why] += len(self.frames) - known
        return frames

    # -- user --------------------------------------------------------------

    def _resolve_user(self, samples: RingSamples, attribution: Attribution) -> tuple[I64, Bool]:
        """Return the user path of each sample, and whether it is folded."""
        spaces, chains = attribution.spaces, samples.user
        hashed = _hash(chains)
        result = np.zeros(len(chains.lengths), np.int64)
        folded = np.zeros(len(chains.lengths), np.bool_)
        lasts = attribution.space >= spaces.made
        serials = np.array([image.serial for image in spaces.lasting], np.uint64)
        for known, chosen in ((True, lasts), (False, ~lasts)):
            rows = (chosen & (chains.lengths > 0)).nonzero()[0]
            if not len(rows):
                continue
            space = attribution.space[rows]
            mark = serials[space - spaces.made] if known else space
            later = spaces.count_later(space, samples.time_ns[rows]).astype(np.uint64)
            keys = hashed[rows] + mark.astype(np.uint64) * _GOLDEN + later * _FINISH
            numbers = self._user_paths.get(keys) if known else np.full(len(rows), -1, np.int64)
            missing = np.flatnonzero(numbers < 0)
            if len(missing):
                unique, first, inverse = group(keys[missing])
                make = partial(self._make_user_paths, samples, attribution, rows[missing[first]])
                made, whole = self._make_some(
                    chains.lengths[rows[missing[first]]],
                    np.bincount(inverse),
                    unique if known else None,
                    make,
                )
                numbers[missing] = made[inverse]
                folded[rows[missing]] = ~whole[inverse]
            result[rows] = numbers
        return result, folded

    def _make_some(
        self, lengths: I64, samples: I64, keys: U64 | None, make: _MakesPaths
    ) -> tuple[I64, Bool]:
        """Return the paths of new chains, and which are whole; with `keys` they are remembered."""
        before = np.full(len(lengths), -1, np.int64)
        if keys is not None and len(self._folded_paths):
            before = self._folded_paths.get(keys)
        choice = Choice.all_whole(len(lengths))
        if self._choosing is not None:
            choice = self._choosing.choose(NewChains(lengths, samples, before >= 0))
        if choice.whole.all():
            made = make(np.arange(len(lengths)), None)
        else:
            made = before
            whole = np.flatnonzero(choice.whole)
            made[whole] = make(whole, None)
            folded = np.flatnonzero(made < 0)
            made[folded] = make(folded, choice.outer)
            if keys is not None:
                self._remember_folded(keys[folded], made[folded])
        if keys is not None:
            self._user_paths.put(keys[choice.whole], made[choice.whole])
        return made, choice.whole

    def _remember_folded(self, keys: U64, paths: I64) -> None:
        if len(self._folded_paths) + len(keys) > _MAX_FOLDED:
            self._folded_paths.clear()
        self._folded_paths.put(keys, paths)

    def _make_user_paths(
        self,
        samples: RingSamples,
        attribution: Attribution,
        rows: Rows,
        new: Rows,
        outer: int | None,
    ) -> I64:
        """Return the paths of samples' chains; folded, if `outer` functions are to be left."""
        if not len(new):
            return np.empty(0, np.int64)
        some = _take(samples.user, rows[new])
        marks = np.empty(0, np.int64)
        if outer is not None:
            some, marks = cut(some, outer)
        module, offset = attribution.spaces.locate(
            np.repeat(attribution.space[rows[new]], some.lengths),
            some.addresses,
            np.repeat(samples.time_ns[rows[new]], some.lengths),
        )
        frames = np.full(len(module), self._unknown, np.int64)
        mapped = np.flatnonzero(module >= 0)
        places = (module[mapped].astype(np.uint64) << _48) | (offset[mapped] & _OFFSET_MASK)
        frames[mapped] = self._known_places.find(
            places, lambda rows: self._make_frames(places[rows])
        )
        frames[marks] = self._folded
        # Processes that were gone before it was known what they had mapped.
        self.unnamed[Reason.PROCESS_GONE] += int(np.count_nonzero(attribution.space[rows[new]] < 0))
        return self._number_paths(frames, some)

    def _make_frames(self, places: U64) -> I64:
        """The frame of each place; a place is a module number and an offset in it, sorted."""
        frames = np.empty(len(places), np.int64)
        modules = (places >> _48).astype(np.int64)
        for number in distinct(modules).tolist():
            mine = np.flatnonzero(modules == number)
            binary = self._modules.open_module(self._processes.modules[number])
            names = binary.resolve(places[mine] & _OFFSET_MASK)
            number_of = {
                name: self._number(Frame(binary.module, name, False))
                for name in dict.fromkeys(names)
            }
            frames[mine] = [number_of[name] for name in names]
        return frames

    # -- numbering ---------------------------------------------------------

    def _number_marks(self) -> None:
        """Number the frames that are no functions, before all others."""
        self._unknown = self._number(Frame(UNKNOWN, UNKNOWN, False))
        self._folded = self._number(Frame(FOLDED, FOLDED, False))

    def _number(self, frame: Frame) -> int:
        number = self._frame_numbers.get(frame)
        if number is None:
            number = self._frame_numbers[frame] = len(self.frames)
            self.frames.append(frame)
        return number

    def _number_paths(self, frames: I64, chains: Chains) -> I64:
        """The numbers of paths given as frames, chain after chain."""
        kept, lengths = frames, chains.lengths
        # Without frame pointers a walk strays into data: one unknown says as much as ten.
        repeated = self._find_repeated(frames, chains)
        if len(repeated):
            kept = np.delete(frames, repeated)
            owner = np.searchsorted(np.cumsum(lengths), repeated, "right")
            lengths = lengths - np.bincount(owner, minlength=len(lengths))
        ends = np.cumsum(lengths)
        # Frame 0 must count as well: a zero at the end of a chain adds nothing to its hash.
        tidy = Chains(kept.astype(np.uint64) + np.uint64(1), ends - lengths, lengths)

        def make(rows: Rows) -> I64:
            first, size = ends[rows] - 1, lengths[rows]
            upto = np.cumsum(size)
            along = np.repeat(first + upto - size, size) - np.arange(int(upto[-1]))
            path = kept[along]  # outermost first
            before = len(self.paths)
            self.paths.extend(path, size)
            unmapped = (path == self._unknown) & np.repeat(size > 1, size)
            self.unnamed[Reason.NO_MAPPING] += int(np.count_nonzero(unmapped))
            return np.arange(before, before + len(rows))

        numbers = np.zeros(len(lengths), np.int64)
        some = np.flatnonzero(lengths)
        keys = _hash(tidy)[some]
        numbers[some] = self._path_numbers.find(keys, lambda rows: make(some[rows]))
        return numbers

    def _find_repeated(self, frames: I64, chains: Chains) -> Rows:
        """Find unknown frames that follow another one of their chain; the chains are packed."""
        unknown = frames == self._unknown
        repeated = np.flatnonzero(unknown[1:] & unknown[:-1]) + 1
        if len(repeated):
            begins = np.zeros(len(frames), np.bool_)
            begins[chains.starts[chains.lengths > 0]] = True
            repeated = repeated[~begins[repeated]]
        return repeated


def _hash(chains: Chains) -> U64:
    """A 64-bit hash of each chain; that of an empty one is 0."""
    mixed = np.arange(len(chains.addresses), dtype=np.uint64)  # at first the place in its chain
    mixed -= np.repeat(chains.starts.astype(np.uint64), chains.lengths)
    mixed *= _GOLDEN
    mixed |= np.uint64(1)
    mixed *= chains.addresses
    mixed ^= mixed >> _29
    mixed *= _FINISH
    running = np.zeros(len(mixed) + 1, np.uint64)
    np.cumsum(mixed, out=running[1:])  # wraps, and so do the differences
    hashed: U64 = running[chains.starts + chains.lengths] - running[chains.starts]
    return hashed


def _take(chains: Chains, rows: Rows) -> Chains:
    """Some of the chains, packed."""
    lengths = chains.lengths[rows]
    addresses = gather(chains.addresses, chains.starts[rows], lengths)
    return Chains(addresses, np.cumsum(lengths) - lengths, lengths)


def is_resolved(frames: list[Frame]) -> Bool:
    """Which frames carry a function's name."""
    return np.array([not frame.name.startswith(("+0x", "[")) for frame in frames], bool)
