"""Names that processes took and who started them, as perf rings hold them.

A node that starts hundreds of programs a second announces each twice or three times, and a
maker of cgroups is among them now and then. So records are read as columns; only those of the
processes asked for become objects, to be taken in the order of time beside the hits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from nodescope.arrays import I64, Bool
from nodescope.numbering import distinct, is_among
from nodescope.perf.decode import decode, split

_GENERATIONS = 3  # above a maker: a shell, what started it, and their like


class Renamed(NamedTuple):
    """A process has another name from now on."""

    time_ns: int
    pid: int
    comm: str


class Born(NamedTuple):
    """A process was started by another."""

    time_ns: int
    pid: int
    parent_pid: int


@dataclass(frozen=True, slots=True)
class Announced:
    """Each record of some processes, and the last name and parent of all others."""

    records: list[Renamed | Born] = field(default_factory=list)  # unordered
    names: dict[int, bytes] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)


def parse_announced(drained: Iterable[bytes], wanted: Collection[int], until_ns: int) -> Announced:
    """Parse what rings held; `wanted` are processes, whose forebears are looked for, too.

    Records of `until_ns` and later are not for this time: they come one by one, whosever.
    """
    batch = decode([split(0, data) for data in drained], cgroup=False)
    comms, forks = batch.comms, batch.forks
    # Threads have names, too; the process is what matters.
    renamed = _in_order(comms.pid == comms.tid, comms.time_ns)
    born = _in_order(forks.pid == forks.tid, forks.time_ns)
    some = np.array(sorted(wanted), np.int64)
    for _ in range(_GENERATIONS):
        above = forks.parent_pid[born[is_among(forks.pid[born], some)]]
        some = distinct(np.concatenate((some, above)))

    def is_single(pid: I64, time_ns: I64) -> Bool:
        return is_among(pid, some) | (time_ns >= until_ns)

    pid, time_ns, parent = forks.pid[born], forks.time_ns[born], forks.parent_pid[born]
    single = is_single(pid, time_ns)
    parents = dict(zip(pid[~single].tolist(), parent[~single].tolist(), strict=True))
    records: list[Renamed | Born] = list(
        map(Born, time_ns[single].tolist(), pid[single].tolist(), parent[single].tolist())
    )
    pid, time_ns, name = comms.pid[renamed], comms.time_ns[renamed], comms.name[renamed]
    name = name.view("S16")  # without the NULs at its end
    single = is_single(pid, time_ns)
    names = dict(zip(pid[~single].tolist(), name[~single].tolist(), strict=True))
    texts = (each.decode("utf-8", "replace") for each in name[single].tolist())
    records += map(Renamed, time_ns[single].tolist(), pid[single].tolist(), texts)
    return Announced(records, names, parents)


def _in_order(chosen: Bool, time_ns: I64) -> I64:
    """Return the chosen rows in the order of time."""
    rows = np.flatnonzero(chosen)
    ordered: I64 = rows[np.argsort(time_ns[rows], kind="stable")]
    return ordered
