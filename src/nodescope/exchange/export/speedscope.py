"""speedscope: its file format, sampled profiles (speedscope.app/file-format-schema.json).

One profile of all, or one per thread name or thread, the busiest first. Samples of
equal stacks are one with a weight: left-heavy and sandwich views are exact, and a
two-minute recording of 96 cores stays a file that a browser opens.
"""

from __future__ import annotations

import json
from typing import IO, Any, Literal

import numpy as np

from nodescope.exchange.export.stacks import ExportedStacks, Frame, Parts, count, label

Split = Literal["none", "comm", "thread"]
SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_MOST_PROFILES = 500  # what a menu can show; the rest is one profile


def write_speedscope(parts: Parts, file: IO[bytes], name: str, split: Split = "none") -> int:
    """Write all samples; returns how many."""
    stacks = ExportedStacks()
    groups: dict[str, dict[int, int]] = {}
    total = 0
    for part in parts:
        thread = part.tid if split == "thread" else np.zeros(len(part.row), np.int64)
        (rows, tids), counts = count(part.row, thread)
        paths = stacks.number_rows(part.columns, rows)[rows]
        for row, tid, path, number in zip(
            rows.tolist(), tids.tolist(), paths.tolist(), counts.tolist(), strict=True
        ):
            group = "all"
            if split != "none":
                comm = part.comm(row)
                group = comm if split == "comm" else f"{comm} ({tid})"
            own = groups.setdefault(group, {})
            own[path] = own.get(path, 0) + number
        total += int(counts.sum())
    _write(file, name, stacks, _limited(groups))
    return total


def _limited(groups: dict[str, dict[int, int]]) -> list[tuple[str, dict[int, int]]]:
    ordered = sorted(groups.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    kept, others = ordered[:_MOST_PROFILES], ordered[_MOST_PROFILES:]
    rest: dict[int, int] = {}
    for _, own in others:
        for path, number in own.items():
            rest[path] = rest.get(path, 0) + number
    if rest:
        kept.append((f"{len(others)} others", rest))
    return kept or [("all", {})]


def _write(
    file: IO[bytes], name: str, stacks: ExportedStacks, groups: list[tuple[str, dict[int, int]]]
) -> None:
    def put(document: Any) -> None:
        text = json.dumps(document, separators=(",", ":"))
        file.write(text.encode("utf-8", "backslashreplace"))

    file.write(b'{"$schema":')
    put(SCHEMA)
    file.write(b',"exporter":"nodescope","activeProfileIndex":0,"name":')
    put(name)
    file.write(b',"shared":{"frames":')
    put([_frame(frame) for frame in stacks.frames])
    file.write(b'},"profiles":[')
    for index, (group, own) in enumerate(groups):
        weights = list(own.values())
        head = {
            "type": "sampled",
            "name": group,
            "unit": "none",
            "startValue": 0,
            "endValue": sum(weights),
            "weights": weights,
        }
        file.write(b"," if index else b"")
        file.write(json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"samples":[')
        for position, path in enumerate(own):
            file.write(b"," if position else b"")
            put(stacks.paths[path])
        file.write(b"]}")
    file.write(b"]}\n")


def _frame(frame: Frame) -> dict[str, str]:
    return {"name": label(frame), "file": frame[0]}
