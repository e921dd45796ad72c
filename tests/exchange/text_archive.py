"""Imports for tests: a file in, plain rows out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodescope.archive.reader import Archive
from nodescope.exchange.import_files import import_files
from nodescope.ingest.parsed import ParsedFrame, ParsedSamples
from nodescope.ingest.sink import ImportReport


@dataclass(frozen=True)
class Row:
    """A sample, all references followed."""

    wall_ns: int
    cpu: int
    pid: int
    tid: int
    comm: str
    kernel: bool
    stack: tuple[str, ...]  # names, outermost first


def import_file(path: Path, archive: Path) -> tuple[ImportReport, Archive]:
    imported = import_files([path], archive)
    assert not imported.failures
    return imported.reports[0], Archive.open(archive)


def read_samples(archive: Archive) -> list[Row]:
    rows: list[Row] = []
    for segment in archive.segments():
        frames = segment.read("frames").column("name").to_pylist()
        stacks: list[tuple[str, ...]] = []
        path: list[str] = []
        table = segment.read("stacks")
        for depth, frame in zip(
            table.column("depth").to_pylist(), table.column("frame").to_pylist(), strict=True
        ):
            del path[depth:]
            path.append(frames[frame])
            stacks.append(tuple(path))
        profile = segment.read("profile").to_pylist()
        for sample in segment.read("samples").to_pylist():
            about = profile[sample["profile"]]
            rows.append(
                Row(
                    int(segment.wall_ns(sample["tick"] * segment.tick_ns)),
                    sample["cpu"],
                    sample["pid"],
                    sample["pid"] + sample["thread"],
                    about["comm"],
                    about["kernel"],
                    stacks[about["stack"]],
                )
            )
    return sorted(rows, key=lambda row: (row.wall_ns, row.cpu))


def read_rows(archive: Archive, table: str) -> list[dict[str, Any]]:
    """Rows of another table, `time_ns` on the wall."""
    rows: list[dict[str, Any]] = []
    for segment in archive.segments():
        rows += [
            row | {"time_ns": int(segment.wall_ns(row["time_ns"]))}
            for row in segment.read(table).to_pylist()
        ]
    return rows


@dataclass(frozen=True)
class Parsed:
    """A sample as a parser gave it."""

    time_ns: int
    cpu: int
    pid: int
    tid: int
    comm: str
    kernel: bool
    frames: tuple[ParsedFrame, ...]

    @property
    def stack(self) -> tuple[str, ...]:
        return tuple(frame.name for frame in self.frames)


def parsed(batches: Iterable[ParsedSamples]) -> list[Parsed]:
    return list(_parsed(batches))


def _parsed(batches: Iterable[ParsedSamples]) -> Iterator[Parsed]:
    for batch in batches:
        for row in range(len(batch)):
            yield Parsed(
                int(batch.time_ns[row]),
                int(batch.cpu[row]),
                int(batch.pid[row]),
                int(batch.tid[row]),
                batch.names.comms[int(batch.comm[row])],
                bool(batch.kernel_mode[row]),
                tuple(batch.names.frames[n] for n in batch.names.paths[int(batch.path[row])]),
            )


def in_blocks(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]
