"""Samples as rows of a segment: of a recorder, an import or the lab."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodescope.archive.interning import Interner
from nodescope.archive.schema import ColumnData
from nodescope.arrays import I64


@dataclass(frozen=True, slots=True)
class SampleRows:
    """Samples as columns, in any order; times are on the clock of whoever took them.

    `user` and `kernel` are row numbers of paths, `comm` of comms, as the interner was given
    them; a format that does not part user from kernel frames gives whole stacks as `user`,
    and path 0, the empty one, as `kernel`.
    """

    time_ns: I64
    cpu: I64  # -1 where the capture does not tell
    pid: I64
    tid: I64
    comm: I64
    kernel_mode: I64  # 0 or 1
    user: I64
    kernel: I64
    cgroup: tuple[npt.NDArray[np.int32], list[str]] | None = None  # row numbers, -1 unknown


def intern_samples(interner: Interner, samples: SampleRows, tick_ns: int) -> dict[str, ColumnData]:
    """Return the rows to append by table: new ones of dictionaries first, then `samples`."""
    profile = interner.intern(samples.comm, samples.kernel_mode, samples.user, samples.kernel)
    rows: dict[str, ColumnData] = dict(interner.take_new_rows())
    count = len(samples.time_ns)
    if count:
        nowhere: tuple[npt.NDArray[np.int32], list[str]] = (np.full(count, -1, np.int32), [])
        rows["samples"] = {
            "cpu": samples.cpu.astype(np.int16),
            "tick": samples.time_ns // tick_ns,
            "pid": samples.pid.astype(np.int32),
            "thread": (samples.tid - samples.pid).astype(np.int32),
            "cgroup": samples.cgroup or nowhere,
            "profile": profile.astype(np.int32),
        }
    return rows
