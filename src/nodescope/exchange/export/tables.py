"""Rows as CSV or Parquet, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from nodescope.archive.schema import ColumnData

TableFormat = Literal["csv", "parquet"]


def write_table(
    batches: Iterable[ColumnData], schema: Mapping[str, str], file: IO[bytes], kind: TableFormat
) -> int:
    """Write batches of columns; `schema` names each column's Arrow type. Returns the rows."""
    arrow = pa.schema([(name, pa.type_for_alias(alias)) for name, alias in schema.items()])
    writer: Any
    if kind == "csv":
        writer = pyarrow.csv.CSVWriter(file, arrow)
    else:
        writer = pyarrow.parquet.ParquetWriter(file, arrow, compression="zstd")
    total = 0
    with writer:
        for batch in batches:
            arrays = [pa.array(batch[field.name], field.type) for field in arrow]
            table = pa.table(arrays, schema=arrow)
            writer.write_table(table)
            total += len(table)
    return total
