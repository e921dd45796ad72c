"""How much each process ran over time: one lane for each of those that ran most.

A large segment answers from its roll-up by second (`feature_seconds`), which leaves out
processes with less than a thousandth of its samples; a small one from its samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nodescope.arrays import I64
from nodescope.numbering import count_distinct
from nodescope.quantities import SECOND_NS
from nodescope.recording.part import Part
from nodescope.recording.sample_columns import SampleColumns

_BY_SECOND = "feature_seconds"
_SECONDS = 1 << 32  # more than a machine runs


@dataclass(frozen=True, slots=True)
class ProcessSeconds:
    """Samples of one segment by process name and second."""

    from_ns: int
    to_ns: int
    comms: list[str]
    comm: I64  # a code in `comms`
    start_ns: I64  # wall time at which the second starts
    samples: I64

    @property
    def bytes(self) -> int:
        """Estimate the memory it takes."""
        return 3 * self.samples.nbytes + 80 * len(self.comms) + 1000


@dataclass(frozen=True, slots=True)
class ProcessLane:
    """One process over time."""

    comm: str
    total: int
    samples: I64  # by column


def count_process_seconds(segment: Part) -> ProcessSeconds:
    """Count a segment's samples by process name and second."""
    columns = SampleColumns(segment)
    if _BY_SECOND in segment.description.tables:
        found = columns.features
        rows = np.flatnonzero(found.kind[found.counted] == 0)  # a process, whatever it did
        comm, comms = found.comm[found.counted[rows]], found.comms
        second, samples = found.second[rows], found.counts[rows]
    else:
        ticks = segment.read("samples", ["tick"]).column("tick").to_numpy()
        comm, comms = columns.profile_comm[columns.profile], columns.comms
        keys, samples = count_distinct(
            comm * _SECONDS + ticks.astype(np.int64) * segment.tick_ns // SECOND_NS
        )
        comm, second = np.divmod(keys, _SECONDS)
    start_ns = segment.wall_ns(second * SECOND_NS)
    return ProcessSeconds(segment.wall_from_ns, segment.wall_to_ns, comms, comm, start_ns, samples)


def draw_lanes(
    counted: Iterable[ProcessSeconds], from_ns: int, column_ns: int, columns: int, most: int
) -> list[ProcessLane]:
    """Return the processes that ran most in these columns, each with its samples by column."""
    lanes: dict[str, I64] = defaultdict(lambda: np.zeros(columns, np.int64))
    for each in counted:
        column = (each.start_ns - from_ns) // column_ns
        for code in np.unique(each.comm).tolist():
            rows = np.flatnonzero((each.comm == code) & (column >= 0) & (column < columns))
            if len(rows):
                np.add.at(lanes[each.comms[code]], column[rows], each.samples[rows])
    found = [ProcessLane(comm, int(lane.sum()), lane) for comm, lane in lanes.items()]
    return sorted(found, key=lambda lane: (-lane.total, lane.comm))[:most]
