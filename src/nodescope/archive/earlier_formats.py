"""Read what earlier formats wrote in another shape than today's.

Formats 1 and 2 wrote the stacks of an open segment as rows of `calls`: a function and the
row of its callers. A recorder that finds such a segment left open seals it like its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from nodescope.archive.schema import arrow_schema, make_numbers
from nodescope.archive.stack_layout import MAX_DEPTH, read_calls
from nodescope.numbering import distinct, gather


def read_stacks_of_calls(calls: Any, profile: Any) -> tuple[Any, Any]:
    """Return `stacks` and `profile` of an open segment, from its `calls` and `profile`.

    A stack whose callers are not all there is row -1, which no table has.
    """
    parent, frame = calls.column("parent").to_numpy(), calls.column("frame").to_numpy()
    asked = profile.column("stack").to_numpy()
    known = (asked >= 0) & (asked < len(parent))
    leaves = distinct(asked[known]).astype(np.int64)
    listed = read_calls(parent, frame, leaves)
    lengths = np.minimum(listed.lengths, MAX_DEPTH)
    frames = gather(listed.frames, listed.starts, lengths)
    ends = np.cumsum(lengths)
    depth = np.arange(len(frames)) - np.repeat(ends - lengths, lengths)
    row = np.full(len(asked), -1, np.int32)
    at = np.searchsorted(leaves, asked[known])
    row[known] = np.where(lengths[at] > 0, ends[at] - 1, -1)
    stacks = pa.Table.from_arrays(
        [make_numbers(depth.astype(np.int16)), make_numbers(frames)], schema=arrow_schema("stacks")
    )
    place = profile.schema.get_field_index("stack")
    return stacks, profile.set_column(place, profile.schema.field(place), make_numbers(row))
