"""What an archive holds: for benchmarks that record, and check what they recorded."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from nodescope.analysis.call_tree import CallTree
from nodescope.archive.reader import Archive
from nodescope.archive.stack_ids import identify_frames, identify_roots
from nodescope.archive.status import summarise
from nodescope.arrays import I64
from nodescope.records.tables import FOLDED


def look_into(path: Path) -> dict[str, Any]:
    """Return what the archive holds, and how many of the samples' frames have names."""
    archive = Archive.open(path)
    summary = summarise(archive)
    named = frames = samples = profile_rows = folded = 0
    kinds: set[str] = set()
    for segment in archive.segments():
        names = segment.read("frames", ["name"]).column("name").to_pylist()
        resolved = np.array([not name.startswith(("+0x", "[")) for name in names], np.int64)
        mark = np.array([name == FOLDED for name in names], np.int64)
        profile, stacks = segment.read("profile"), segment.read("stacks")
        depth, frame = (stacks.column(each).to_numpy() for each in ("depth", "frame"))
        tree = CallTree(depth, frame)
        leaf, count = (profile.column(each).to_numpy() for each in ("stack", "samples"))
        named += int((_along(tree, resolved[frame])[leaf] * count).sum())
        folded += int(count[_along(tree, mark[frame])[leaf] > 0].sum())
        frames += int(((depth[leaf].astype(np.int64) + 1) * count).sum())
        samples += int(count.sum())
        profile_rows = max(profile_rows, len(profile))
        kinds.update(segment.read("events", ["kind"]).column("kind").to_pylist())
    return {
        "samples": summary.samples,
        "lost": summary.lost,
        "bytes_per_sample": summary.bytes_per_sample,
        "named_ratio": named / max(1, frames),
        "depth": frames / max(1, samples),
        "profile_rows": profile_rows,
        "folded": folded,
        "lowered": "rate_lowered" in kinds,
    }


def _along(tree: CallTree, own: I64) -> I64:
    """Sums from the outermost caller down to each row."""
    sums = own.copy()
    for rows in tree.levels[1:]:
        sums[rows] += sums[tree.parent[rows]]
    return sums


def describe_samples(path: Path) -> str:
    """Return a hash of core, time, process, thread, name, mode, root and leaf of all samples."""
    digest = hashlib.sha256()
    for segment in Archive.open(path).segments():
        frames = segment.read("frames").to_pydict()
        modules = sorted(set(frames["module"]))
        number = {module: row for row, module in enumerate(modules)}
        module_of = np.array([number[each] for each in frames["module"]], np.int64)
        ids = identify_frames(modules, module_of, frames["name"], np.array(frames["kernel"], bool))
        stacks, profile = segment.read("stacks"), segment.read("profile")
        depth, frame = (stacks.column(each).to_numpy() for each in ("depth", "frame"))
        outermost = np.maximum.accumulate(np.where(depth == 0, np.arange(len(depth)), 0))
        leaf = profile.column("stack").to_numpy()
        by_profile = [
            ids[frame[leaf]],
            ids[frame[outermost[leaf]]],
            identify_roots(profile.column("comm").to_pylist()),
            profile.column("kernel").to_numpy(zero_copy_only=False).astype(np.uint64),
        ]
        samples = segment.read("samples", ["cpu", "tick", "pid", "thread", "profile"])
        row = samples.column("profile").to_numpy()
        columns = [samples.column(each).to_numpy() for each in ("cpu", "tick", "pid", "thread")]
        columns += [each[row] for each in by_profile]
        order = np.lexsort(columns[::-1])
        for column in columns:
            digest.update(np.ascontiguousarray(column[order].astype(np.uint64)).tobytes())
    return digest.hexdigest()
