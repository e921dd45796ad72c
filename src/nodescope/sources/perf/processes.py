"""Who a sampled thread was, and which address space it ran in, at that time.

Most processes of a busy node live for milliseconds: born, renamed, mapped,
sampled once and gone within one batch of records. Walking every side-band
record in Python would cost more than all the rest of the recorder, so records
are joined to samples as columns, by (thread, time), and only what survives the
batch is kept as state. What neither batch nor state knows is asked of `/proc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.errors import SourceError
from nodescope.sources import proc_pid
from nodescope.sources.perf.address_space import I32, AddressSpaces, Image, Module
from nodescope.sources.perf.decode import I64, U64, Batch, Mappings

UNKNOWN_COMM = "[unknown]"
_MAX_FORK_DEPTH = 32  # generations within one batch; more is not followed
_MAX_THREADS = 200_000  # remembered; beyond, all is forgotten and asked of /proc again
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                 0xD6E8FEB86659FD93, 0xFF51AFD7ED558CCD], np.uint64)


@dataclass(frozen=True, slots=True)
class Attribution:
    """For each sample: the thread's name, and its address space, by number."""

    comm: I32  # number in `Processes.comms`
    space: I64  # number in `spaces`; -1 where none is known
    spaces: AddressSpaces


class Processes:
    """What is known of the threads and address spaces of the node."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self.comms: list[str] = []
        self.modules: list[Module] = []
        self._anonymous = np.zeros(64, bool)  # per module
        self._comm_numbers: dict[bytes | str, int] = {}
        self._module_numbers: dict[object, int] = {}
        self._comm_of: dict[int, int] = {}  # tid → number of comm
        self._image_of: dict[int, Image] = {}  # pid → image

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

    def attribute(self, batch: Batch) -> Attribution:
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

    def mapping_modules(self, batch: Batch, chosen: npt.NDArray[np.intp]) -> I32:
        """The module numbers of the chosen mapping records."""
        mappings = batch.mappings
        # A file is known by device, inode and generation; what has no inode
        # (anonymous memory, the vdso) by how its name begins, and by process.
        words = np.frombuffer(batch.data, np.uint64, len(batch.data) // 8)
        name = words[mappings.name_at[chosen] >> 3]
        owner = np.where(mappings.file[chosen, 1] == 0, mappings.pid[chosen], 0).astype(np.uint64)
        keys = (
            mappings.file[chosen] * _MIX[:3]
        ).sum(axis=1, dtype=np.uint64) + name * _MIX[3] + owner * _MIX[4]
        unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
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

    def image_from_proc(self, pid: int) -> Image | None:
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
        image = Image(
            start=start,
            end=np.array([entry.end for entry in mapped], np.uint64),
            offset=self.file_offsets(start, offset, module),
            module=module,
        )
        self._image_of[pid] = image
        return image


class _Join:
    """One batch being joined; `images` grows as they are needed."""

    def __init__(self, known: Processes, batch: Batch) -> None:
        self.known = known
        self.batch = batch
        self.lasting: list[Image] = []
        self.origin, self.shift = _time_scale(batch)
        forks = batch.forks
        self.born = dict(
            zip(
                forks.tid.tolist(),
                zip(forks.parent_tid.tolist(), forks.time_ns.tolist(), strict=True),
                strict=True,
            )
        )
        self.spawned = {
            pid: (parent, time)
            for pid, parent, time in zip(
                forks.pid.tolist(), forks.parent_pid.tolist(), forks.time_ns.tolist(), strict=True
            )
            if pid != parent
        }
        self.ended = set(batch.exits.tid.tolist())
        self._sort_comms()
        self._lasting_numbers: dict[int, int] = {}

    def _key(self, ids: I64, times: I64) -> I64:
        since = np.clip((times - self.origin) >> self.shift, 0, (1 << 40) - 1)
        return np.asarray((ids << 40) | since, np.int64)

    # -- names -------------------------------------------------------------

    def _sort_comms(self) -> None:
        comms = self.batch.comms
        unique, inverse = np.unique(comms.name, return_inverse=True)
        numbers = np.array([self.known.comm_number(name.tobytes()) for name in unique], np.int32)
        keys = self._key(comms.tid, comms.time_ns)
        order = np.argsort(keys, kind="stable")
        self.comm_keys = keys[order]
        self.comm_tids = comms.tid[order]
        self.comm_numbers = numbers[inverse[order]] if len(order) else np.empty(0, np.int32)

    def sample_comms(self) -> I32:
        samples = self.batch.samples
        at = np.searchsorted(self.comm_keys, self._key(samples.tid, samples.time_ns), "right") - 1
        found = at >= 0
        found[found] = self.comm_tids[at[found]] == samples.tid[found]
        comm = np.zeros(len(samples), np.int32)
        comm[found] = self.comm_numbers[at[found]]
        missing = np.flatnonzero(~found)
        if len(missing):
            tids, inverse = np.unique(samples.tid[missing], return_inverse=True)
            earlier = np.array([self._comm_before(tid) for tid in tids.tolist()], np.int32)
            comm[missing] = earlier[inverse]
        return comm

    def _comm_before(self, tid: int) -> int:
        """The name a thread had before the first one it took in this batch."""
        state = self.known._comm_of
        for _ in range(_MAX_FORK_DEPTH):
            if (number := state.get(tid)) is not None:
                return number
            if tid not in self.born:
                break
            tid, time = self.born[tid]
            key = self._key(np.array([tid]), np.array([time]))
            at = int(np.searchsorted(self.comm_keys, key[0], "right")) - 1
            if at >= 0 and self.comm_tids[at] == tid:
                return int(self.comm_numbers[at])
        if tid == 0:
            return self.known.comm_number("swapper")
        return self.known.comm_from_proc(tid)

    # -- address spaces ----------------------------------------------------

    def sample_spaces(self) -> I64:
        samples = self.batch.samples
        in_user = samples.user.lengths > 0
        self._make_spaces(np.unique(samples.pid[in_user]))
        space = np.full(len(samples), -1, np.int64)
        pid, time = samples.pid[in_user], samples.time_ns[in_user]
        found = self._made_at(pid, time)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            pids, inverse = np.unique(pid[missing], return_inverse=True)
            before = np.array([self._space_before(one) for one in pids.tolist()], np.int64)
            found[missing] = before[inverse]
        space[in_user] = found
        return space

    def spaces(self) -> AddressSpaces:
        return AddressSpaces(len(self.exec_pids), self.row_number, self.rows, self.lasting)

    def _make_spaces(self, sampled: I64) -> None:
        """A space for each exec of a process that is sampled, survives, or bore such a one."""
        comms, mappings = self.batch.comms, self.batch.mappings
        ended = self.batch.exits.pid[self.batch.exits.pid == self.batch.exits.tid]
        moved = np.concatenate((comms.pid[comms.exec], mappings.pid))
        wanted = np.union1d(sampled, np.setdiff1d(moved, ended))
        for _ in range(_MAX_FORK_DEPTH):
            forks = self.batch.forks
            parents = forks.parent_pid[np.isin(forks.pid, wanted)]
            grown = np.union1d(wanted, parents)
            if len(grown) == len(wanted):
                break
            wanted = grown
        execs = np.flatnonzero(comms.exec & np.isin(comms.pid, wanted))
        keys = self._key(comms.pid[execs], comms.time_ns[execs])
        order = np.argsort(keys, kind="stable")
        self.exec_keys, self.exec_pids = keys[order], comms.pid[execs[order]]
        chosen = np.flatnonzero(np.isin(mappings.pid, wanted))
        number = self._made_at(mappings.pid[chosen], mappings.time_ns[chosen])
        order = np.lexsort((mappings.start[chosen], number))
        number, chosen = number[order], chosen[order]
        image = self._mapped(chosen)
        old = int(np.searchsorted(number, 0))
        self.row_number = number[old:]
        self.rows = image.part(slice(old, None))
        if old:
            self._map_into_known(mappings.pid[chosen[:old]], image.part(slice(0, old)))

    def _mapped(self, chosen: npt.NDArray[np.intp]) -> Image:
        mappings = self.batch.mappings
        module = self.known.mapping_modules(self.batch, chosen)
        start = mappings.start[chosen]
        offset = self.known.file_offsets(start, mappings.offset[chosen], module)
        return Image(start, start + mappings.length[chosen], offset, module)

    def _made(self, number: int) -> Image:
        first, last = np.searchsorted(self.row_number, [number, number + 1])
        return self.rows.part(slice(int(first), int(last)))

    def _map_into_known(self, pids: I64, mapped: Image) -> None:
        """What processes mapped without having executed a new program in this batch."""
        for pid in np.unique(pids).tolist():
            image = self.known._image_of.get(pid)
            if image is None and pid in self.spawned:
                image = self.known._image_of.get(self.spawned[pid][0])
            if image is not None:  # else /proc will tell, with all its mappings, when sampled
                self.known._image_of[pid] = image.with_mappings(mapped.part(pids == pid))

    def _made_at(self, pids: I64, times: I64) -> I64:
        """Which exec of this batch made the space in force; -1 where none had yet."""
        at = np.searchsorted(self.exec_keys, self._key(pids, times), "right") - 1
        found = at >= 0
        found[found] = self.exec_pids[at[found]] == pids[found]
        return np.where(found, at, -1).astype(np.int64)

    def _space_before(self, pid: int) -> int:
        """The space a process had before the first exec of this batch."""
        first = pid
        for _ in range(_MAX_FORK_DEPTH):
            if pid in self.known._image_of or pid not in self.spawned:
                break
            pid, time = self.spawned[pid]
            at = int(self._made_at(np.array([pid]), np.array([time]))[0])
            if at >= 0:
                return at
        return self._lasting_space(pid, first)

    def _lasting_space(self, pid: int, first: int) -> int:
        number = self._lasting_numbers.get(pid)
        if number is None:
            image = self.known._image_of.get(pid)
            if image is None:
                image = self.known.image_from_proc(pid)
            if image is None and first != pid:
                image = self.known.image_from_proc(first)
            number = -1
            if image is not None:
                number = len(self.exec_pids) + len(self.lasting)
                self.lasting.append(image)
            self._lasting_numbers[pid] = number
        return number

    # -- what outlives the batch -------------------------------------------

    def remember(self) -> None:
        """Keep the names and images of those that still live, forget the ended."""
        known, batch = self.known, self.batch
        for tid in self.born:
            if tid not in self.ended and tid not in known._comm_of:
                known._comm_of[tid] = self._comm_before(tid)
        alive = ~np.isin(self.comm_tids, batch.exits.tid)
        known._comm_of.update(
            zip(self.comm_tids[alive].tolist(), self.comm_numbers[alive].tolist(), strict=True)
        )
        for pid, (parent, _) in self.spawned.items():
            if pid not in self.ended and pid not in known._image_of:
                image = self._image_at_end(parent)
                if image is not None:
                    known._image_of[pid] = image
        for number, pid in enumerate(self.exec_pids.tolist()):
            if pid not in self.ended:
                known._image_of[pid] = self._made(number)
        for tid in self.ended:
            known._comm_of.pop(tid, None)
            known._image_of.pop(tid, None)

    def _image_at_end(self, pid: int) -> Image | None:
        """The image a forked child shares, as far as it is known without asking."""
        at = int(np.searchsorted(self.exec_pids, pid, "right")) - 1
        if at >= 0 and self.exec_pids[at] == pid:
            return self._made(at)
        return self.known._image_of.get(pid)


def _time_scale(batch: Batch) -> tuple[int, int]:
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


def _module(batch: Batch, mappings: Mappings, row: int) -> Module:
    device, inode, _generation = (int(word) for word in mappings.file[row])
    return Module(
        pid=int(mappings.pid[row]),
        path=batch.name(int(mappings.name_at[row])),
        device=(device & 0xFFFFFFFF, device >> 32),
        inode=inode,
    )
