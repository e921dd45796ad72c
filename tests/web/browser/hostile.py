"""A recording made to harm who looks at it: names that are programs, stacks without measure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nodescope.archive.interning import Interner
from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.lab.synthetic import TICK_NS, HandClock
from nodescope.numbering import Sequences
from nodescope.quantities import SECOND_NS

WALL_NS = 1_780_000_000 * SECOND_NS
SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(2)>"
PATTERN = "(a+)+$[*\\"  # a bad pattern, and a slow one
DIRECTION = "\u202egnp.exe\x1b[31m\x00"


def write_hostile(path: Path, depth: int, width: int) -> None:
    """One stack of `depth` frames, one caller of `width` different ones, and odd names."""
    clock = HandClock(1000 * SECOND_NS, WALL_NS - 1000 * SECOND_NS)
    node = {"name": IMAGE, "boot_id": SCRIPT, "cpus": 4}
    names = [SCRIPT, IMAGE, PATTERN, DIRECTION, "x" * 5000]
    frames = [("[unknown]", "[unknown]", False)]
    frames += [(SCRIPT, name, False) for name in names]
    wide = len(frames)
    frames += [("wide", f"callee {number}", False) for number in range(width)]
    paths = Sequences([tuple(range(1, wide)), (1,) * depth])
    for number in range(width):
        paths.append((1, wide + number))
    comms = [SCRIPT[:15], IMAGE[:15], PATTERN]
    keep = Retention(10**18, 1 << 50)
    with ArchiveWriter.open(path, node=node, clock=clock, tick_ns=TICK_NS, retention=keep) as out:
        _samples(out, clock, Interner(frames, paths, comms), len(paths))
        _events(out, clock)
        clock.monotonic += 60 * SECOND_NS
        out.seal_segment()


def _samples(out: ArchiveWriter, clock: HandClock, interner: Interner, paths: int) -> None:
    # the odd names and the deep stack often enough to be seen
    path = np.concatenate((np.repeat([1, 2], 4000), np.arange(3, paths)))
    comm = np.arange(len(path)) % 3
    none = np.zeros(len(path), np.int64)
    profile = interner.intern(comm, none, path, none)
    for table, columns in interner.take_new_rows().items():
        out.append(table, columns)
    ticks = (clock.monotonic + np.linspace(0, 59 * SECOND_NS, len(path))) // TICK_NS
    out.append("samples", {
        "cpu": (np.arange(len(path)) % 4).astype(np.int16),
        "tick": ticks.astype(np.int64),
        "pid": np.full(len(path), 7, np.int32),
        "thread": none.astype(np.int32),
        "cgroup": (none.astype(np.int32), [f"/{SCRIPT}"]),
        "profile": profile.astype(np.int32),
    })  # fmt: skip


def _events(out: ArchiveWriter, clock: HandClock) -> None:
    """Among them times that no clock shows."""
    rows: list[dict[str, Any]] = [
        dict(time_ns=at, kind=kind, subject=IMAGE, message=SCRIPT, details='{"<b>": "</script>"}')
        for kind in ("nic_reset", "job_failed", "mark", SCRIPT)
        for at in (clock.monotonic + 30 * SECOND_NS, 0, -(2**62), 2**62)
    ]
    out.append("events", {name: [row[name] for row in rows] for name in rows[0]})
    start = clock.monotonic
    out.append("units", {"time_ns": [start], "unit": [SCRIPT], "active": [IMAGE]})
    names = {"id": [SCRIPT], "name": [IMAGE], "image": [SCRIPT]}
    out.append("containers", {"time_ns": [start], "runtime": ["docker"], "state": ["x"], **names})
    out.append("nics", {"time_ns": [start], "nic": [IMAGE], "driver": [SCRIPT]})
    out.append("dying_parents", {"time_ns": [start], "path": [f"/{SCRIPT}"], "dying": [2**60]})
