"""Canaries for the private part of pyarrow: `nodescope.archive.parquet` is all that uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyarrow import _parquet

from nodescope.archive.parquet import ParquetTable, write_parquet

CHANGED = (
    f"pyarrow {pa.__version__} changed its private module _parquet: "
    "adapt nodescope/archive/parquet.py, or use pyarrow.parquet there"
)
TABLE = pa.table(
    {
        "cpu": pa.array([0, 0, 1, 1], pa.int32()),
        "tick": pa.array([3, 5, 4, 9], pa.int64()),
        "comm": pa.array(["kubelet", "dd", "kubelet", None]),
    }
)
ENCODINGS = {"cpu": "DELTA_BINARY_PACKED", "tick": "DELTA_BINARY_PACKED"}


def write_here() -> bytes:
    try:
        written = write_parquet(
            TABLE, texts=["comm"], encodings=ENCODINGS, level=3, statistics=["tick"],
            rows_per_group=2,
        )  # fmt: skip
    except (AttributeError, TypeError) as error:
        pytest.fail(f"{CHANGED}: {error}")
    return bytes(written)


def test_the_private_module_has_what_we_take_from_it() -> None:
    assert _parquet.ParquetReader is pyarrow.parquet.ParquetReader, CHANGED
    for name in ("open", "metadata", "schema_arrow", "read_all"):
        assert hasattr(_parquet.ParquetReader, name), f"{CHANGED}: no ParquetReader.{name}"
    for name in ("write_table", "close"):
        assert hasattr(_parquet.ParquetWriter, name), f"{CHANGED}: no ParquetWriter.{name}"


def test_it_writes_what_the_public_module_writes(tmp_path: Path) -> None:
    path = tmp_path / "public.parquet"
    pyarrow.parquet.write_table(
        TABLE, path, row_group_size=2, use_dictionary=["comm"], column_encoding=ENCODINGS,
        compression="zstd", compression_level=3, write_statistics=["tick"], store_schema=False,
        data_page_version="1.0", version="2.6",
    )  # fmt: skip
    assert write_here() == path.read_bytes(), CHANGED


def test_it_reads_what_the_public_module_reads() -> None:
    source = pa.BufferReader(write_here())
    try:
        table = ParquetTable(source, ["comm"])
        found = table.read(["comm", "tick"])
        described = (table.rows, table.columns)
    except (AttributeError, TypeError) as error:
        pytest.fail(f"{CHANGED}: {error}")
    assert described == (4, ["cpu", "tick", "comm"]), CHANGED
    public = pyarrow.parquet.ParquetFile(
        pa.BufferReader(write_here()), read_dictionary=["comm"]
    ).read(["comm", "tick"])
    assert found.equals(public.select(["comm", "tick"])), CHANGED
    assert found.column("comm").to_pylist() == ["kubelet", "dd", "kubelet", None]


def test_no_command_pays_for_the_public_module() -> None:
    """It is why the private one is used at all."""
    script = "import nodescope.archive.reader, sys; print('pyarrow.parquet' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"
