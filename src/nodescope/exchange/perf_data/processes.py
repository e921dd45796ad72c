"""Who ran, and what they had mapped, as a `perf.data` file tells it: nobody else can.

The recorder asks `/proc` for what its records do not say. Here the records say
all there is: `perf record` writes names and mappings of what runs before it
starts to sample. A thread without a name is called as perf calls it, `:TID`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nodescope.arrays import I64, U64
from nodescope.exchange.perf_data.index import MMAP
from nodescope.exchange.perf_data.records import Records
from nodescope.exchange.perf_data.symbols import BY_BUILD_ID, BY_PATH, CapturedModules
from nodescope.perf.address_space import MappedImage, Module
from nodescope.perf.decode import COMM, EXIT, FORK, MMAP2, Mappings, RecordBatch
from nodescope.perf.processes import Attribution, Processes

_MISC_BUILD_ID = 1 << 14
_NOBODY = (1 << 32) - 1  # a task that has already been taken apart
_NONE = np.empty(0, np.uint64)
_NOTHING = MappedImage(_NONE, _NONE, _NONE, np.empty(0, np.int32), np.empty(0, np.int64))


class CapturedProcesses(Processes):
    """Threads and address spaces, known from records alone."""

    def attribute(self, batch: RecordBatch) -> Attribution:
        """Join a batch's samples with what its side-band records tell."""
        forks = batch.forks
        for tid in forks.tid.tolist():  # a number that is used again: nothing is left of the old
            self._comm_of.pop(tid, None)
        for pid in forks.pid[forks.pid != forks.parent_pid].tolist():
            self._image_of.pop(pid, None)
        return super().attribute(batch)

    def forget(self) -> None:
        """Nothing: what is forgotten cannot be asked again."""

    def forget_names(self) -> None:
        """Nothing: numbers stay, for images refer to them."""

    def comm_from_proc(self, tid: int) -> int:
        """Return the name that perf gives a thread without a name record."""
        name = "swapper" if tid == 0 else f":{tid if tid != _NOBODY else -1}"
        number = self._comm_of[tid] = self.comm_number(name)
        return number

    def image_from_proc(self, pid: int) -> MappedImage | None:
        """Nobody to ask."""
        del pid
        return None

    def expect(self, batch: RecordBatch) -> None:
        """Note who maps something without having been born or executed before our eyes."""
        forks = batch.forks
        born = forks.pid[forks.pid != forks.parent_pid]  # the others are threads
        unborn = np.setdiff1d(batch.mappings.pid, born)
        for pid in unborn.tolist():
            if pid not in self._image_of:
                self._image_of[pid] = _NOTHING


def complete_batch(
    batch: RecordBatch, records: Records, rows: I64, times: I64, modules: CapturedModules
) -> RecordBatch:
    """A decoded batch with what differs from the recorder's: times, identities, old mappings.

    Losses are told by the file's own records; here they must not make anybody forget.
    """
    kind = records.kind[rows]
    mappings = replace(
        _identified(batch.mappings, records.misc[rows][kind == MMAP2], records, modules),
        time_ns=times[kind == MMAP2],
    )
    if (kind == MMAP).any():
        old = _old_mappings(records, rows[kind == MMAP], times[kind == MMAP], modules)
        mappings = _joined(old, mappings)
    return replace(
        batch,
        comms=replace(batch.comms, time_ns=times[kind == COMM]),
        forks=replace(batch.forks, time_ns=times[kind == FORK]),
        exits=replace(batch.exits, time_ns=times[kind == EXIT]),
        mappings=mappings,
        lost=(),
    )


def _stand_in(device: tuple[int, int], number: int) -> tuple[int, int, int]:
    return device[0] | device[1] << 32, number, 0


def _identified(
    mappings: Mappings, misc: I64, records: Records, modules: CapturedModules
) -> Mappings:
    """Build-ids, which stand where device and inode would, as numbers."""
    marked = np.flatnonzero(misc & _MISC_BUILD_ID)
    if not len(marked):
        return mappings
    file = mappings.file.copy()
    unique, inverse = np.unique(file[marked], axis=0, return_inverse=True)
    numbers: list[tuple[int, int, int]] = []
    for raw in (row.tobytes() for row in unique):
        build_id = raw[4 : 4 + min(raw[0], 20)]
        known = any(build_id)
        numbers.append(_stand_in(BY_BUILD_ID, modules.number(build_id)) if known else (0, 0, 0))
    file[marked] = np.array(numbers, np.uint64)[inverse.ravel()]
    for row in marked[file[marked, 1] == 0].tolist():  # no build-id: known by its path
        file[row] = _by_path(records, int(mappings.name_at[row]), modules)
    return replace(mappings, file=file)


def _by_path(records: Records, name_at: int, modules: CapturedModules) -> tuple[int, int, int]:
    raw = records.data[name_at : name_at + 4096].split(b"\0", 1)[0]
    path = raw.decode("utf-8", "replace")
    if Module(0, path, (0, 0), 0).anonymous or path.startswith("["):
        return 0, 0, 0
    return _stand_in(BY_PATH, modules.number(path))


def _old_mappings(records: Records, rows: I64, times: I64, modules: CapturedModules) -> Mappings:
    """PERF_RECORD_MMAP: no device, no inode; a path is what it is."""
    at = records.at[rows]
    file = np.zeros((len(rows), 3), np.uint64)
    for row, name_at in enumerate(((at + 5) << 3).tolist()):
        file[row] = _by_path(records, name_at, modules)
    words: U64 = records.words
    return Mappings(
        pid=(words[at + 1] & np.uint64(0xFFFFFFFF)).astype(np.int64),
        time_ns=times,
        start=words[at + 2],
        length=words[at + 3],
        offset=words[at + 4],
        file=file,
        name_at=(at + 5) << 3,
    )


def _joined(one: Mappings, other: Mappings) -> Mappings:
    return Mappings(
        pid=np.concatenate((one.pid, other.pid)),
        time_ns=np.concatenate((one.time_ns, other.time_ns)),
        start=np.concatenate((one.start, other.start)),
        length=np.concatenate((one.length, other.length)),
        offset=np.concatenate((one.offset, other.offset)),
        file=np.concatenate((one.file, other.file)),
        name_at=np.concatenate((one.name_at, other.name_at)),
    )
