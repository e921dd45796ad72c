"""The examples of `docs/archive.md` against a fresh segment, read by plain Parquet.

DuckDB and pandas are not among what the project installs, so the examples are not run:
every file, column and field they name must be there, and mean what they take it to mean.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from tests.analysis.conftest import SAMPLES, write_archive

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
    joined = {*tables["samples"].column_names, *tables["profile"].column_names}
    used = set(re.findall(r'samples\["(\w+)"\]', PYTHON)) - {"time"}  # which it makes
    assert used <= joined
    # Joining needs no suffixes, and takes the number of a row.
    assert not set(tables["samples"].column_names) & set(tables["profile"].column_names)
    assert 'about["start"]["tick_ns"]' in PYTHON
    assert 'about["clock"][0][1]' in PYTHON
    assert isinstance(about["start"]["tick_ns"], int)
    assert isinstance(about["clock"][0][1], int)


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
