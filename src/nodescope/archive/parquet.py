"""Parquet files read and written by the core of pyarrow: the only use of a private part of it.

`pyarrow.parquet` is these two classes, and with them file systems and thread pools that the
archive does not need: 35 ms of every command, and 9 MB of the recorder's memory. The tests
hold both against `pyarrow.parquet` and fail by name when pyarrow changes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

try:
    from pyarrow._parquet import ParquetReader, ParquetWriter
except ImportError as error:
    raise ImportError(
        f"pyarrow {pa.__version__} has no private module _parquet with ParquetReader and "
        f"ParquetWriter: take an earlier pyarrow, or make {__name__} use pyarrow.parquet"
    ) from error


class ParquetTable:
    """One table, opened from a path or from bytes."""

    def __init__(self, source: Any, texts: Sequence[str]) -> None:
        """Open it; columns named in `texts` come dictionary-encoded."""
        self._reader = ParquetReader()
        self._reader.open(source, read_dictionary=list(texts), pre_buffer=False)

    @property
    def rows(self) -> int:
        """The number of rows by the file's footer."""
        return int(self._reader.metadata.num_rows)

    @cached_property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(self._reader.schema_arrow.names)

    def read(self, columns: Sequence[str]) -> Any:
        """Return a `pyarrow.Table` of these columns."""
        known = self.columns
        return self._reader.read_all([known.index(name) for name in columns], use_threads=False)


def write_parquet(
    table: Any,
    *,
    texts: Sequence[str],
    encodings: Mapping[str, str],
    level: int,
    statistics: Sequence[str],
    rows_per_group: int,
) -> Any:
    """Return a `pyarrow.Table` as a Parquet file in memory.

    `texts` are dictionary-encoded, `encodings` are those of other columns, `level` is zstd's;
    `statistics` names the columns whose extremes help a reader to skip row groups.
    """
    sink = pa.BufferOutputStream()
    writer = ParquetWriter(
        sink,
        table.schema,
        use_dictionary=list(texts),
        column_encoding=dict(encodings),
        compression="zstd",
        compression_level=level,
        write_statistics=list(statistics) or False,
        # The Arrow schema in the footer would repeat what Parquet's own types say.
        store_schema=False,
        data_page_version="1.0",
        version="2.6",
        writer_engine_version="V2",
    )
    writer.write_table(table, row_group_size=rows_per_group)
    writer.close()
    return sink.getvalue()
