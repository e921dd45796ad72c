"""Who a sampled thread was, and which address space it ran in, at that time.

Most processes of a busy node live for milliseconds: born, renamed, mapped,
sampled once and gone within one batch of records. Walking every side-band
record in Python would cost more than all the rest of the recorder, so records
are joined to samples as columns, by (thread, time), and only what survives the
batch is kept as state. What neither batch nor state knows is asked of `/proc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.arrays import I32, I64, U64
from nodescope.errors import SourceError
from nodescope.numbering import distinct, group, is_among
from nodescope.perf import proc_pid
from nodescope.perf.address_space import AddressSpaces, MappedImage, Module
from nodescope.perf.decode import Mappings, RecordBatch

UNKNOWN_COMM = "[unknown]"
_MAX_FORK_DEPTH = 32  # generations within one batch; more is not followed
_MAX_THREADS = 200_000  # remembered; beyond, all is forgotten and asked of /proc again
_VDSO = np.frombuffer(b"[vdso]\0\0", np.uint64)[0]  # the same in every process
_MIX = np.array(
    [
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xD6E8FEB86659FD93,
        0xFF51AFD7ED558CCD,
    ],
    np.uint64,
)


@dataclass(frozen=True, slots=True)
class Attribution:
    """For each sample: the thread's name, and its address space, by number."""

    comm: I32  # number in `Processes.comms`
    space: I64  # number in `spaces`; -1 where none is known
    spaces: AddressSpaces


class Processes:
    """The threads and address spaces of the node, as far as they are known."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self.comms: list[str] = []
        self.modules: list[Module] = []
        self._anonymous = np.zeros(64, bool)  # per module
        self._comm_numbers: dict[bytes | str, int] = {}
        self._module_numbers: dict[object, int] = {}
        self._comm_of: dict[int, int] = {}  # tid → number of comm
        self._image_of: dict[int, MappedImage] = {}  # pid → image

    def forget(self) -> None:
        """Start from nothing, as after lost records."""
        self._comm_of.clear()
        self._image_of.clear()

    def forget_names(self) -> None:
        """Drop the numbering of comms and modules, and so all that uses it."""
        self.forget()
        self.comms.clear()
        self.modules.clear()
        self._comm_numbers.clear()
        self._module_numbers.clear()

    def attribute(self, batch: RecordBatch) -> Attribution:
        """Join a batch's samples with what its side-band records and `/proc` tell."""
        join = _Join(self, batch)
        comm = join.sample_comms()
        space = join.sample_spaces()
        join.remember()
        if len(self._comm_of) > _MAX_THREADS or batch.lost:
            self.forget()
        return Attribution(comm, space, join.spaces())

    # -- numbering ---------------------------------------------------------

    def comm_number(self, name: bytes | str) -> int:
        """The number of a thread name, given as text or NUL-padded bytes."""
        number = self._comm_numbers.get(name)
        if number is None:
            text = name if isinstance(name, str) else _comm_text(name)
            number = self._comm_numbers.get(text)
            if number is None:
                number = len(self.comms)
                self.comms.append(text)
                self._comm_numbers[text] = number
            self._comm_numbers[name] = number
        return number

    def comm_numbers(self, names: list[bytes]) -> list[int]:
        """The numbers of many thread names: nearly all of them were met before."""
        for name in dict.fromkeys(names):
            if name not in self._comm_numbers:
                self.comm_number(name)
        return list(map(self._comm_numbers.__getitem__, names))

    def module_number(self, module: Module) -> int:
        """The number of a module; a file is the same one whoever maps it."""
        key = (module.path, module.device, module.inode, module.pid if module.anonymous else 0)
        number = self._module_numbers.get(key)
        if number is None:
            number = self._module_numbers[key] = len(self.modules)
            self.modules.append(module)
            if number >= len(self._anonymous):
                self._anonymous = np.concatenate((self._anonymous, np.zeros(number, bool)))
            self._anonymous[number] = module.anonymous
        return number

    def file_offsets(self, start: U64, offset: U64, module: I32) -> U64:
        """Offsets in the file; what is in no file is addressed as in memory."""
        return np.where(self._anonymous[module], start, offset)

    def mapping_modules(self, batch: RecordBatch, chosen: npt.NDArray[np.intp]) -> I32:
        """The module numbers of the chosen mapping records."""
        mappings = batch.mappings
        # A file is known by device, inode and generation; what has no inode
        # (anonymous memory, the vdso) by how its name begins, and by process.
        words = np.frombuffer(batch.data, np.uint64, len(batch.data) // 8)
        name = words[mappings.name_at[chosen] >> 3]
        no_file = (mappings.file[chosen, 1] == 0) & (name != _VDSO)
        owner = np.where(no_file, mappings.pid[chosen], 0).astype(np.uint64)
        keys = (
            (mappings.file[chosen] * _MIX[:3]).sum(axis=1, dtype=np.uint64)
            + name * _MIX[3]
            + owner * _MIX[4]
        )
        unique, first, inverse = group(keys)
        numbers = np.empty(len(unique), np.int32)
        for position, (key, at) in enumerate(zip(unique.tolist(), first.tolist(), strict=True)):
            number = self._module_numbers.get(key)
            if number is None:
                number = self.module_number(_module(batch, mappings, int(chosen[at])))
                self._module_numbers[key] = number
            numbers[position] = number
        return numbers[inverse]

    # -- /proc -------------------------------------------------------------

    def comm_from_proc(self, tid: int) -> int:
        """Ask `/proc` for a thread's name, and remember it."""
        try:
            number = self.comm_number(proc_pid.read_comm(self._proc, tid))
        except SourceError:  # a vanished pid is normal
            return self.comm_number(UNKNOWN_COMM)
        self._comm_of[tid] = number
        return number

    def image_from_proc(self, pid: int) -> MappedImage | None:
        """Ask `/proc` for a process's executable mappings, and remember them."""
        try:
            mapped = proc_pid.read_executable_maps(self._proc, pid)
        except SourceError:
            return None
        modules = [
            self.module_number(Module(pid, entry.path, entry.device, entry.inode))
            for entry in mapped
        ]
        start = np.array([entry.start for entry in mapped], np.uint64)
        module = np.array(modules, np.int32)
        offset = np.array([entry.offset for entry in mapped], np.uint64)
        image = MappedImage(
            start=start,
            end=np.array([entry.end for entry in mapped], np.uint64),
            offset=self.file_offsets(start, offset, module),
            module=module,
            since=np.zeros(len(mapped), np.int64),
        )
        self._image_of[pid] = image
        return image


class _Join:
    """One batch being joined."""

    def __init__(self, known: Processes, batch: RecordBatch) -> None:
        self.known = known
        self.batch = batch
        self.lasting: list[MappedImage] = []
        self.lasting_numbers: dict[int, int] = {}  # pid → number of space
        self.origin, self.shift = _time_scale(batch)
        comms = batch.comms
        numbers = np.array(known.comm_numbers(comms.name.tolist()), np.int64)
        self.named = self._moments(comms.tid, comms.time_ns, numbers)
        exits = batch.exits
        self.ended = set(exits.tid.tolist())
        self.ended_tids = distinct(exits.tid)
        self.ended_pids = distinct(exits.pid[exits.pid == exits.tid])

    def _moments(self, ids: I64, times: I64, values: I64) -> _Moments:
        keys = self._key(ids, times)
        order = np.argsort(keys, kind="stable")
        return _Moments(keys[order], ids[order], values[order])

    def _key(self, ids: I64, times: I64) -> I64:
        return np.asarray((ids << 40) | ((times - self.origin) >> self.shift), np.int64)

    # -- names -------------------------------------------------------------

    def sample_comms(self) -> I32:
        samples = self.batch.samples
        comm = self.named.at(self._key(samples.tid, samples.time_ns), samples.tid)
        missing = np.flatnonzero(comm < 0)
        if len(missing):
            tids, _, inverse = group(samples.tid[missing])
            comm[missing] = self._comms_before(tids)[inverse]
        return comm.astype(np.int32)

    def _comms_before(self, tids: I64) -> I64:
        """The names threads had before the first one they took in this batch."""
        forks, born = self.batch.forks, self._thread_births
        result = np.full(len(tids), -1, np.int64)
        open_rows = np.arange(len(tids))
        now = tids.copy()
        for _ in range(_MAX_FORK_DEPTH):
            state = [self.known._comm_of.get(tid, -1) for tid in now[open_rows].tolist()]
            result[open_rows] = state
            open_rows = open_rows[np.array(state, np.int64) < 0]
            birth = born.row_of(now[open_rows])
            open_rows, birth = open_rows[birth >= 0], birth[birth >= 0]
            if not len(open_rows):
                break
            now[open_rows] = forks.parent_tid[birth]
            keys = self._key(forks.parent_tid[birth], forks.time_ns[birth])
            result[open_rows] = self.named.at(keys, forks.parent_tid[birth])
            open_rows = open_rows[result[open_rows] < 0]
        for row in np.flatnonzero(result < 0).tolist():
            result[row] = self.known.comm_from_proc(int(now[row]))
        return result

    @cached_property
    def _thread_births(self) -> _Births:
        order = self.batch.forks.tid.argsort(kind="stable")
        return _Births(self.batch.forks.tid[order], order)

    @cached_property
    def _process_births(self) -> _Births:
        forks = self.batch.forks
        rows = (forks.pid != forks.parent_pid).nonzero()[0]
        rows = rows[forks.pid[rows].argsort(kind="stable")]
        return _Births(forks.pid[rows], rows)

    # -- address spaces ----------------------------------------------------

    def sample_spaces(self) -> I64:
        samples = self.batch.samples
        in_user = samples.user.lengths > 0
        self._make_spaces(distinct(samples.pid[in_user]))
        space = np.full(len(samples), -1, np.int64)
        pid, time = samples.pid[in_user], samples.time_ns[in_user]
        space[in_user] = self._spaces_at(self._key(pid, time), pid)
        self.before = self._spaces_at(self.made.keys - 1, self.made.ids, ask=False)
        return space

    def _spaces_at(self, keys: I64, pids: I64, *, ask: bool = True) -> I64:
        """The spaces of processes at some time; what is not known is asked of `/proc`, or not."""
        found = self.made.at(keys, pids)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            unique, _, inverse = group(pids[missing])
            found[missing] = self._spaces_before(unique, ask)[inverse]
        return found

    def spaces(self) -> AddressSpaces:
        return AddressSpaces(
            len(self.made.keys), self.row_number, self.rows, self.lasting, self.before
        )

    def _make_spaces(self, sampled: I64) -> None:
        """A space for each exec of a process that is sampled, survives, or bore such a one."""
        comms, mappings, forks = self.batch.comms, self.batch.mappings, self.batch.forks
        moved = distinct(np.concatenate((comms.pid[comms.exec], mappings.pid)))
        survive = moved[~is_among(moved, self.ended_pids)]
        wanted = distinct(np.concatenate((sampled, survive)))
        for _ in range(_MAX_FORK_DEPTH):
            parents = forks.parent_pid[is_among(forks.pid, wanted)]
            grown = distinct(np.concatenate((wanted, parents)))
            if len(grown) == len(wanted):
                break
            wanted = grown
        execs = (comms.exec & is_among(comms.pid, wanted)).nonzero()[0]
        pid = comms.pid[execs]
        keys = self._key(pid, comms.time_ns[execs])
        order = keys.argsort(kind="stable")
        self.made = _Moments(keys[order], pid[order], np.arange(len(order)))
        chosen = is_among(mappings.pid, wanted).nonzero()[0]
        pid = mappings.pid[chosen]
        number = self.made.at(self._key(pid, mappings.time_ns[chosen]), pid)
        order = np.lexsort((mappings.start[chosen], number))
        number, chosen = number[order], chosen[order]
        image = self._mapped(chosen)
        old = int(np.searchsorted(number, 0))
        self.row_number = number[old:]
        self.rows = image.part(slice(old, None))
        if old:
            self._map_into_known(mappings.pid[chosen[:old]], image.part(slice(0, old)))

    def _mapped(self, chosen: npt.NDArray[np.intp]) -> MappedImage:
        mappings = self.batch.mappings
        module = self.known.mapping_modules(self.batch, chosen)
        start = mappings.start[chosen]
        offset = self.known.file_offsets(start, mappings.offset[chosen], module)
        return MappedImage(
            start, start + mappings.length[chosen], offset, module, mappings.time_ns[chosen]
        )

    def _map_into_known(self, pids: I64, mapped: MappedImage) -> None:
        """What processes mapped without having executed a new program in this batch."""
        forks = self.batch.forks
        parents = dict(zip(forks.pid.tolist(), forks.parent_pid.tolist(), strict=True))
        for pid in distinct(pids).tolist():
            image = self.known._image_of.get(pid)
            if image is None:
                image = self.known._image_of.get(parents.get(pid, -1))
            if image is not None:  # else /proc will tell, with all its mappings, when sampled
                self.known._image_of[pid] = image.with_mappings(mapped.part(pids == pid))

    def _spaces_before(self, pids: I64, ask: bool) -> I64:
        """The spaces processes had before the first exec of theirs in this batch."""
        forks, born = self.batch.forks, self._process_births
        result = np.full(len(pids), -1, np.int64)
        now = pids.copy()
        open_rows = np.arange(len(pids))
        for _ in range(_MAX_FORK_DEPTH):
            unknown = [pid not in self.known._image_of for pid in now[open_rows].tolist()]
            open_rows = open_rows[np.array(unknown, bool)]
            birth = born.row_of(now[open_rows])
            open_rows, birth = open_rows[birth >= 0], birth[birth >= 0]
            if not len(open_rows):
                break
            now[open_rows] = forks.parent_pid[birth]
            keys = self._key(forks.parent_pid[birth], forks.time_ns[birth])
            result[open_rows] = self.made.at(keys, forks.parent_pid[birth])
            open_rows = open_rows[result[open_rows] < 0]
        for row in np.flatnonzero(result < 0).tolist():
            result[row] = self._lasting_space(int(now[row]), int(pids[row]), ask)
        return result

    def _lasting_space(self, pid: int, descendant: int, ask: bool) -> int:
        """The space of a process from before this batch, or as `/proc` shows it now."""
        number = self.lasting_numbers.get(pid)
        if number is None:
            image = self.known._image_of.get(pid)
            if image is None and not ask:
                return -1
            image = image or self.known.image_from_proc(pid)
            if image is None and descendant != pid:
                image = self.known.image_from_proc(descendant)
            number = -1
            if image is not None:
                number = len(self.made.keys) + len(self.lasting)
                self.lasting.append(image)
            self.lasting_numbers[pid] = number
        return number

    # -- what outlives the batch -------------------------------------------

    def remember(self) -> None:
        """Keep the names and images of those that still live, forget the ended."""
        known, forks = self.known, self.batch.forks
        alive = ~is_among(self.named.ids, self.ended_tids)
        latest = zip(self.named.ids[alive].tolist(), self.named.values[alive].tolist(), strict=True)
        born = forks.tid[~is_among(forks.tid, self.ended_tids)]
        born = born[~is_among(born, distinct(self.named.ids))]
        unnamed = np.array([tid for tid in born.tolist() if tid not in known._comm_of], np.int64)
        inherited = zip(unnamed.tolist(), self._comms_before(unnamed).tolist(), strict=True)
        known._comm_of.update(inherited)
        known._comm_of.update(latest)
        self._remember_images()
        for remembered in (known._comm_of, known._image_of):
            for ended in remembered.keys() & self.ended:
                del remembered[ended]

    def _remember_images(self) -> None:
        known, forks = self.known, self.batch.forks
        lives = ~is_among(forks.pid, self.ended_pids) & (forks.pid != forks.parent_pid)
        last_made = dict(zip(self.made.ids.tolist(), self.made.values.tolist(), strict=True))
        for pid, parent in zip(
            forks.pid[lives].tolist(), forks.parent_pid[lives].tolist(), strict=True
        ):
            image = self._made_image(last_made[parent]) if parent in last_made else None
            image = image or known._image_of.get(parent)
            if image is not None and pid not in known._image_of:
                known._image_of[pid] = image
        for pid, number in last_made.items():
            if pid not in self.ended:
                known._image_of[pid] = self._made_image(number)

    def _made_image(self, number: int) -> MappedImage:
        first, last = np.searchsorted(self.row_number, [number, number + 1])
        before = int(self.before[number])
        left: MappedImage | None = None
        if before >= len(self.made.keys):
            left = self.lasting[before - len(self.made.keys)]
        elif before >= 0:
            left = self._made_image(before)
        return self.rows.part(slice(int(first), int(last)), left)


@dataclass(frozen=True, slots=True)
class _Moments:
    """Values that took force at a time, per thread or process, sorted by both."""

    keys: I64
    ids: I64
    values: I64

    def at(self, keys: I64, ids: I64) -> I64:
        """The value in force for each id at its time; -1 where none was yet."""
        result = np.full(len(keys), -1, np.int64)
        if len(self.keys):
            row = np.searchsorted(self.keys, keys, "right") - 1
            found = (row >= 0) & (self.ids[row] == ids)
            result[found] = self.values[row[found]]
        return result


@dataclass(frozen=True, slots=True)
class _Births:
    """Fork records, to be found by the child."""

    ids: I64
    rows: npt.NDArray[np.intp]

    def row_of(self, ids: I64) -> I64:
        """The record of each child's last birth; -1 where there is none."""
        result = np.full(len(ids), -1, np.int64)
        if len(self.ids):
            at = np.searchsorted(self.ids, ids, "right") - 1
            found = (at >= 0) & (self.ids[at] == ids)
            result[found] = self.rows[at[found]]
        return result


def _time_scale(batch: RecordBatch) -> tuple[int, int]:
    """Where time starts in this batch, and how far to shift it to fit 40 bits."""
    times = [
        column.time_ns
        for column in (batch.samples, batch.comms, batch.forks, batch.mappings)
        if len(column.time_ns)
    ]
    if not times:
        return 0, 0
    origin = min(int(column.min()) for column in times)
    span = max(int(column.max()) for column in times) - origin
    return origin, max(0, span.bit_length() - 40)


def _comm_text(name: bytes) -> str:
    return name.split(b"\0", 1)[0].decode("utf-8", "replace")


def _module(batch: RecordBatch, mappings: Mappings, row: int) -> Module:
    device, inode, _generation = (int(word) for word in mappings.file[row])
    return Module(
        pid=int(mappings.pid[row]),
        path=batch.name(int(mappings.name_at[row])),
        device=(device & 0xFFFFFFFF, device >> 32),
        inode=inode,
    )
