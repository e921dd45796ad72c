"""What an archive holds, as plain rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from nodescope.archive.reader import Archive


class Row(NamedTuple):
    time_ns: int
    wall_ns: int
    cpu: int
    pid: int
    tid: int
    comm: str
    kernel: bool
    cgroup: str | None
    stack: tuple[str, ...]  # outermost first
    modules: tuple[str, ...]


def read_rows(archive: Path) -> list[Row]:
    rows: list[Row] = []
    for segment in Archive.open(archive).segments():
        frames = segment.read("frames").to_pylist()
        stacks: list[tuple[int, ...]] = []
        path: list[int] = []
        for node in segment.read("stacks").to_pylist():
            del path[node["depth"] :]
            path.append(node["frame"])
            stacks.append(tuple(path))
        profile = segment.read("profile").to_pylist()
        for sample in segment.read("samples").to_pylist():
            entry = profile[sample["profile"]]
            stack = [frames[number] for number in stacks[entry["stack"]]]
            time_ns = sample["tick"] * segment.tick_ns
            rows.append(
                Row(
                    time_ns,
                    int(segment.wall_ns(time_ns)),
                    sample["cpu"],
                    sample["pid"],
                    sample["pid"] + sample["thread"],
                    entry["comm"],
                    entry["kernel"],
                    sample["cgroup"],
                    tuple(frame["name"] for frame in stack),
                    tuple(frame["module"] for frame in stack),
                )
            )
    return sorted(rows)


def read_table(archive: Path, table: str) -> list[dict[str, object]]:
    return [
        row
        for segment in Archive.open(archive).segments()
        for row in segment.read(table).to_pylist()
    ]


def count(rows: list[Row]) -> Counter[tuple[str, int, int, int]]:
    """Samples by comm, pid, core and second."""
    return Counter((row.comm, row.pid, row.cpu, row.time_ns // 1_000_000_000) for row in rows)
