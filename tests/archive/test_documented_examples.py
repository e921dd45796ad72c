"""The examples of `docs/archive.md` against a fresh segment, read by plain Parquet.

DuckDB and pandas are not among what the project installs, so the examples are not run:
every file, column and field they name must be there, and mean what they take it to mean.
"""

from __future__ import annotations

import json
import re
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from tests.analysis.conftest import SAMPLES, write_archive

from nodescope.archive.reader import Archive

PAGE = (Path(__file__).parents[2] / "docs" / "archive.md").read_text()
SQL = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
(PYTHON,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    write_archive(tmp_path / "archive", [SAMPLES])
    (folder,) = (tmp_path / "archive" / "segments").iterdir()
    return folder


def read(segment: Path, table: str) -> Any:
    return pyarrow.parquet.read_table(segment / f"{table}.parquet")


def test_sql_names_what_there_is(segment: Path) -> None:
    first, second = SQL
    named = set(re.findall(r"\b(profile|stacks|frames)\.(\w+)", first))
    named -= {(table, "parquet") for table, _ in named}
    assert {table for table, _ in named} == {"profile", "stacks", "frames"}
    for table, column in named:
        assert f"'{table}.parquet'" in first
        # `row` is the example's own name for the number of a row.
        assert column in [*read(segment, table).column_names, "row"]
    assert "'segments/*/seconds.parquet'" in second
    assert {"cpu", "user", "kernel"} <= set(read(segment, "seconds").column_names)


def test_python_names_what_there_is(segment: Path) -> None:
    about = json.loads((segment / "segment.json").read_text())
    tables = {name: read(segment, name) for name in about["tables"]}
    for table, column in re.findall(r'tables\["(\w+)"\]\["(\w+)"\]', PYTHON):
        assert column in tables[table].column_names
    columns = [tables[name].column_names for name in ("samples", "threads", "profile")]
    used = set(re.findall(r'samples\["(\w+)"\]', PYTHON)) - {"time", "tick"}  # which it makes
    assert used - {"pid"} <= {name for names in columns for name in names}
    # Joining needs no suffixes, and merging has no columns in common but those it is on.
    samples, threads, profile = map(set, columns)
    assert not samples & threads
    assert (samples | threads) & profile == {"comm"}
    assert not {"rank"} & profile
    assert 'about["start"]["tick_ns"]' in PYTHON
    assert 'about["clock"][0][1]' in PYTHON
    assert isinstance(about["start"]["tick_ns"], int)
    assert isinstance(about["clock"][0][1], int)


def test_samples_refer_as_the_example_follows_them(segment: Path) -> None:
    tables = {name: read(segment, name) for name in ("samples", "threads", "profile")}
    threads = tables["threads"].to_pydict()
    ticks = list(accumulate(tables["samples"].column("later").to_pylist()))
    backs = tables["samples"].column("back").to_pylist()
    often = {number: row for row, number in enumerate(threads["often"])}
    in_time = sorted(range(len(ticks)), key=ticks.__getitem__)
    found: list[int] = []
    seen = 0
    for back in (backs[row] for row in in_time):
        found.append(seen if back == 0 else found[-back] if back <= 63 else often[back - 63])
        seen += back == 0
    thread = [row for _, row in sorted(zip(in_time, found, strict=True))]
    comms = tables["profile"].column("comm").to_pylist()
    different = list(dict.fromkeys(comms))
    pids = list(accumulate((step // 2) ^ -(step % 2) for step in threads["step"]))
    ranked = {}
    for row, comm in enumerate(comms):
        ranked[comm, comms[:row].count(comm)] = row
    by_comm = sorted(range(len(thread)), key=lambda row: threads["comm"][thread[row]])
    stored = tables["samples"].column("rank").to_pylist()
    ranks = [rank for _, rank in sorted(zip(by_comm, stored, strict=True))]
    of_comm = [
        (different[threads["comm"][row]], rank) for row, rank in zip(thread, ranks, strict=True)
    ]
    (sealed,) = Archive.open(segment.parents[1]).segments()
    samples = sealed.read("samples")
    assert [ranked[each] for each in of_comm] == samples.column("profile").to_pylist()
    assert ticks == samples.column("tick").to_pylist()
    assert [pids[row] for row in thread] == samples.column("pid").to_pylist()
    for name in ("thread", "cgroup"):
        assert [threads[name][row] for row in thread] == samples.column(name).to_pylist()


def test_rows_refer_as_the_examples_follow_them(segment: Path) -> None:
    tables = {name: read(segment, name).to_pylist() for name in ("profile", "stacks", "frames")}
    stacks: list[list[str]] = []
    path: list[str] = []
    for row in tables["stacks"]:
        del path[row["depth"] :]
        path.append(tables["frames"][row["frame"]]["name"])
        stacks.append(list(path))
    found = {(row["comm"], *stacks[row["stack"]]) for row in tables["profile"]}
    assert found == {(sample.comm, *(name for _, name, _ in sample.frames)) for sample in SAMPLES}
