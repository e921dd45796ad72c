"""Arrow schemas, made from the declarations in `records` and from nothing else.

A `text` column is a repeated string: dictionary-encoded wherever it is held in
memory or in an open segment, a plain string to whoever reads the Parquet file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from nodescope.errors import UsageError
from nodescope.records import TABLES, Column

_TYPES = {
    "bool": pa.bool_(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "text": pa.dictionary(pa.int32(), pa.string()),
}


@cache
def arrow_schema(table: str) -> Any:
    """The schema of one table; what is not nullable cannot be null."""
    return pa.schema(
        pa.field(column.name, _TYPES[column.type], nullable=column.nullable)
        for column in TABLES[table].columns
    )


def text_columns(table: str) -> tuple[str, ...]:
    """The columns that hold repeated strings."""
    return tuple(column.name for column in TABLES[table].columns if column.type == "text")


def empty_table(table: str) -> Any:
    """The table without rows."""
    return arrow_schema(table).empty_table()


def make_batch(table: str, columns: Mapping[str, Any]) -> Any:
    """A RecordBatch of exactly the declared columns.

    A value is a numpy array, a sequence or an Arrow array; a `text` column may
    also be a pair (indices, values), which costs nothing per row. An index of
    -1 in such a pair means null.
    """
    schema, declared = arrow_schema(table), TABLES[table].columns
    unknown = columns.keys() - {column.name for column in declared}
    missing = [column.name for column in declared if column.name not in columns]
    if unknown or missing:
        raise UsageError(f"table {table}: unknown columns {sorted(unknown)}, missing {missing}")
    arrays = [_make_array(table, column, columns[column.name]) for column in declared]
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise UsageError(f"table {table}: columns of different lengths {sorted(lengths)}")
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _make_array(table: str, column: Column, values: Any) -> Any:
    wanted = _TYPES[column.type]
    try:
        array = _make_text(values) if column.type == "text" else _make_plain(values, wanted)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise UsageError(f"table {table}, column {column.name}: {error}") from error
    if array.null_count and not column.nullable:
        raise UsageError(f"table {table}, column {column.name}: it may not be null")
    return array


def _make_plain(values: Any, wanted: Any) -> Any:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values.cast(wanted)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        return pa.array(values).cast(wanted)
    return pa.array(values, wanted)


def _make_text(values: Any) -> Any:
    wanted = _TYPES["text"]
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], np.ndarray):
        return _make_text_of_pair(values[0], values[1])
    array = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    return array.cast(wanted)


def _make_text_of_pair(indices: np.ndarray[Any, Any], values: Sequence[str] | Any) -> Any:
    dictionary = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    absent = indices < 0
    mask = absent if absent.any() else None
    # safe=True: an index beyond the dictionary is the caller's mistake, found here.
    return pa.DictionaryArray.from_arrays(
        pa.array(indices.astype(np.int32, copy=False), mask=mask), dictionary, safe=True
    )
