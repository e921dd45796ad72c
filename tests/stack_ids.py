"""The ids of the stacks that an archive holds, for tests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from nodescope.analysis.call_tree import CallTree
from nodescope.archive.reader import Archive, Segment
from nodescope.archive.schema import combine, text_indices
from nodescope.archive.stack_ids import identify_frames
from nodescope.arrays import U64


def identify_stacks(segment: Segment) -> U64:
    """Return the id of each row of the segment's `stacks`."""
    frames, stacks = segment.read("frames"), segment.read("stacks")
    modules = combine(frames.column("module"))
    ids = identify_frames(
        modules.dictionary.to_pylist(),
        text_indices(modules).astype(np.int64),
        frames.column("name").to_pylist(),
        frames.column("kernel").to_numpy(zero_copy_only=False),
    )
    tree = CallTree(stacks.column("depth").to_numpy(), stacks.column("frame").to_numpy())
    return tree.identify(ids)


def count_stack_ids(archive: Path, comm: str) -> Counter[int]:
    """Return the samples of a command by the id of their stack."""
    found: Counter[int] = Counter()
    for segment in Archive.open(archive).segments():
        ids = identify_stacks(segment)
        for row in segment.read("profile").to_pylist():
            if row["comm"] == comm:
                found[int(ids[row["stack"]])] += row["samples"]
    return found
