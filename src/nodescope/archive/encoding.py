"""How each column of a sealed segment is encoded, and why; and the writing of it.

A two-core segment is about 23,000 samples, so 4 bytes per sample are 93 kB for
everything: every choice below was measured on 120 s of a two-core machine with
524 forks per second (23,173 samples, 2,095 frames, 10,838 stacks). Sizes are
compressed bytes of the column; nothing but plain Parquet is used, so that any
Parquet reader sees the declared values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nodescope.archive.parquet import write_parquet
from nodescope.archive.schema import ArrowTable, text_columns
from nodescope.archive.thread_samples import write_by_thread
from nodescope.records import WIDE_PATHS

DELTA = "DELTA_BINARY_PACKED"  # each value as its difference to the one above
SPLIT = "BYTE_STREAM_SPLIT"  # all lowest bytes, then all second bytes, …
PREFIX = "DELTA_BYTE_ARRAY"  # what a string shares with the one above is left out

ENCODINGS: dict[str, dict[str, str]] = {
    "samples": {
        "cpu": DELTA,  # a few runs
        "tick": DELTA,  # 3.1 kB, split 5.5: the period is constant, its jitter is small
        "later": SPLIT,  # 1.6 kB: of two ticks in a row the same difference
        "pid": SPLIT,  # 24.2 kB, plain 25.2, delta 37.7: long-lived pids break the deltas
        "thread": DELTA,  # nearly always 0
        "profile": SPLIT,  # 32.1 kB, plain 39.7, delta 41.0: high bytes say how frequent
        "back": SPLIT,  # 11.9 kB, plain 14.4, delta 30.7
        "rank": SPLIT,  # 21.7 kB, plain 27.5, delta 33.6
    },
    "threads": {
        "step": SPLIT,  # 3.9 kB for 6,251 threads; pids as such 6.6
        "thread": SPLIT,
        "comm": SPLIT,  # 2.8 kB for 6,251 threads; as texts 3.6
        "often": SPLIT,  # nearly always 0
    },
    "profile": {
        "stack": DELTA,  # 4.2 kB, split 6.4: sorted inside each power of two
        "trunk": DELTA,
        "samples": SPLIT,  # 0.6 kB, delta 0.7
    },
    "stacks": {
        "depth": SPLIT,  # 3.0 kB, delta 3.9
        "frame": SPLIT,  # 10.4 kB, plain 10.7, delta 14.8
    },
    "trunk": {
        "depth": SPLIT,
        "frame": SPLIT,
    },
    "functions": {"samples": SPLIT, "own": SPLIT, "id": SPLIT},
    "features": {"frame": SPLIT, "samples": SPLIT, "depth": SPLIT, "id": SPLIT},
    "feature_seconds": {
        "second": SPLIT,  # 17 kB of 147,000 rows, delta 24: seconds come again with each feature
        "samples": SPLIT,  # 109 kB, delta 145: neighbours differ by as much as they are
    },
    "cores": {
        "time_ns": SPLIT,  # 0.6 kB, delta 1.2: the times of the first core come again with each
        "user": SPLIT,  # 0.44 kB, delta 0.50
        "nice": SPLIT,  # 0.19 kB, delta 0.29
        "steal": SPLIT,  # 0.13 kB, delta 0.16
    },
    "seconds": {
        "user": SPLIT,  # 0.24 kB, delta 0.27
        "kernel": SPLIT,  # 0.23 kB, delta 0.25
    },
    "frames": {
        "name": PREFIX,  # 12.3 kB, lengths apart 12.8, plain 13.5: they are sorted
    },
} | {
    table.name: {"depth": SPLIT, "frame": SPLIT, "samples": SPLIT, "id": SPLIT}
    for table in WIDE_PATHS
}

# Columns of nulls that are left out of the file: most segments have no trunk, bundles no ids.
WHERE_KNOWN = {"profile": "trunk", "functions": "id"} | {table.name: "id" for table in WIDE_PATHS}

LEVEL = 15  # 19 is 0.2 % smaller for twice the CPU
LEVEL_LARGE = 3  # 12 is 3 % smaller for three times the CPU, and there is room
LARGE_ROWS = 200_000
ROWS_PER_GROUP = 1 << 18  # bounds what the writer holds in memory


class Encoded(NamedTuple):
    """A table of a sealed segment as a Parquet file in memory."""

    name: str
    rows: int
    data: Any


def encode_tables(tables: Mapping[str, ArrowTable]) -> Iterator[Encoded]:
    """Encode a segment's tables one after the other; one without rows has no file."""
    samples = len(tables["samples"])
    stored = dict(tables)
    if samples < LARGE_ROWS:
        by_thread = write_by_thread(tables["samples"], tables["profile"])
        stored["samples"], stored["threads"] = by_thread
    for name, table in stored.items():
        if len(table):
            yield Encoded(name, len(table), encode_table(name, table, choose_level(samples)))


def encode_table(name: str, table: ArrowTable, level: int) -> Any:
    """Encode one table as a Parquet file in memory."""
    optional = WHERE_KNOWN.get(name)
    if optional is not None and table.column(optional).null_count == len(table):
        table = table.drop_columns([optional])
    encodings = {
        column.name: ENCODINGS.get(name, {}).get(column.name, default)
        for column in table.schema
        if (default := _default_encoding(str(column.type))) is not None
    }
    return write_parquet(
        table,
        texts=[text for text in text_columns(name) if text in table.schema.names],
        encodings=encodings,
        level=level,
        # A small file has no row groups to skip.
        statistics=("cpu", "tick") if len(table) > ROWS_PER_GROUP else (),
        rows_per_group=ROWS_PER_GROUP,
    )


def _default_encoding(kind: str) -> str | None:
    """For columns without a measured choice: they are short, and counters or times."""
    return {"int16": DELTA, "int32": DELTA, "int64": DELTA, "string": PREFIX}.get(kind)


def choose_level(rows: int) -> int:
    """The zstd level for a segment of that many samples."""
    return LEVEL if rows < LARGE_ROWS else LEVEL_LARGE
