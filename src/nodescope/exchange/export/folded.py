"""Folded stacks: `comm;function;kernel_function_[k] count`, as stackcollapse-perf writes them.

Equal lines of different segments are added up as long as there is room for them;
every reader of this format adds up the rest.
"""

from __future__ import annotations

import re
from typing import IO

import numpy as np

from nodescope.exchange.export.stacks import ExportedStacks, Parts, count, label

_ROOM = 200_000  # distinct lines held
_UNFIT = re.compile(r"[;\x00-\x1f\x7f]")


def write_folded(parts: Parts, file: IO[bytes]) -> int:
    """Write all samples; returns how many."""
    stacks = ExportedStacks()
    held: dict[tuple[str, int], int] = {}
    total = 0
    for part in parts:
        (rows,), counts = count(part.row)
        paths = stacks.number_rows(part.columns, rows)[rows]
        for row, path, number in zip(rows.tolist(), paths.tolist(), counts.tolist(), strict=True):
            key = (part.comm(row), path)
            held[key] = held.get(key, 0) + number
        total += int(np.sum(counts))
        if len(held) > _ROOM:
            _write(held, stacks, file)
            held, stacks = {}, ExportedStacks()
    _write(held, stacks, file)
    return total


def _write(held: dict[tuple[str, int], int], stacks: ExportedStacks, file: IO[bytes]) -> None:
    names = [fit(label(frame)) + ("_[k]" if frame[2] else "") for frame in stacks.frames]
    lines = (
        f"{fit(comm)};{';'.join([names[frame] for frame in stacks.paths[path]])} {number}\n"
        for (comm, path), number in held.items()
    )
    for line in sorted(lines):
        file.write(line.encode("utf-8", "backslashreplace"))


def fit(name: str) -> str:
    """A name without what separates names and lines here."""
    return _UNFIT.sub(lambda match: ":" if match[0] == ";" else "?", name)
