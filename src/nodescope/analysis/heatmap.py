"""The sub-second heatmap: seconds as columns, offsets within the second as rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nodescope.analysis.filter import Filter
from nodescope.arrays import I64
from nodescope.quantities import SECOND_NS
from nodescope.recording.sample_columns import SampleColumns

MAX_COLUMNS = 20_000  # five and a half hours; a longer window is shown in wider columns


@dataclass(frozen=True, slots=True)
class Heatmap:
    """`counts[column][row]`; a column is `column_ns` wide, a row `column_ns / rows` high."""

    from_ns: int
    column_ns: int
    counts: I64


def make_heatmap(
    parts: Iterable[SampleColumns],
    chosen: Filter,
    from_ns: int,
    to_ns: int,
    rows: int = 50,
    max_columns: int = MAX_COLUMNS,
) -> Heatmap:
    """Count the samples of a recording that pass."""
    times = (
        part.time_ns if (passing := chosen.samples(part)) is None else part.time_ns[passing]
        for part in parts
    )
    return count_times(times, from_ns, to_ns, rows, max_columns)


def make_split_heatmap(
    parts: Iterable[SampleColumns],
    chosen: Filter,
    from_ns: int,
    to_ns: int,
    rows: int,
    max_columns: int,
) -> tuple[Heatmap, Heatmap]:
    """The samples that pass, and of them those in the kernel."""
    whole = count_times([], from_ns, to_ns, rows, max_columns)
    kernel = count_times([], from_ns, to_ns, rows, max_columns)
    for part in parts:
        passing = chosen.samples(part)
        in_kernel = part.profile_kernel[part.profile]
        for made, wanted in (
            (whole, passing),
            (kernel, in_kernel if passing is None else passing & in_kernel),
        ):
            times = part.time_ns if wanted is None else part.time_ns[wanted]
            np.add(
                made.counts,
                count_times([times], from_ns, to_ns, rows, max_columns).counts,
                out=made.counts,
            )
    return whole, kernel


def count_times(
    times: Iterable[I64], from_ns: int, to_ns: int, rows: int, max_columns: int
) -> Heatmap:
    """Count moments by column and row; the first column starts on a whole second."""
    start = from_ns // SECOND_NS * SECOND_NS
    seconds = max(1, -(-(to_ns - start) // SECOND_NS))
    width = -(-seconds // max(max_columns, 1))
    columns = -(-seconds // width)
    counts = np.zeros(columns * rows, np.int64)
    for part in times:
        column, within = np.divmod(part - start, width * SECOND_NS)
        row = within * rows // (width * SECOND_NS)
        inside = (column >= 0) & (column < columns)
        counts += np.bincount((column * rows + row)[inside], minlength=len(counts))
    return Heatmap(start, width * SECOND_NS, counts.reshape(columns, rows))
