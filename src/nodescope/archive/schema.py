"""Arrow schemas, made from the declarations in `records` and from nothing else.

A `text` column is a repeated string: dictionary-encoded wherever it is held in
memory or in an open segment, a plain string to whoever reads the Parquet file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nodescope.errors import UsageError
from nodescope.records import TABLES, Column
from nodescope.records.table import RowType

ArrowTable: TypeAlias = Any  # a `pyarrow.Table`: pyarrow has no type hints
# Rows to be written, by column; see `make_batch`. Arrow arrays are not typed, and do as well.
ColumnData: TypeAlias = Mapping[str, NDArray[Any] | Sequence[object]]

_DTYPES = {"bool": np.bool_, "int16": np.int16, "int32": np.int32, "int64": np.int64}
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


@cache
def _column_names(table: str) -> tuple[frozenset[str], frozenset[str]]:
    """All columns, and those that may not be left out."""
    columns = TABLES[table].columns
    return (
        frozenset(column.name for column in columns),
        frozenset(column.name for column in columns if not column.nullable),
    )


@cache
def column_names(table: str) -> tuple[str, ...]:
    """Return the names of a table's columns, in order."""
    return tuple(column.name for column in TABLES[table].columns)


@cache
def schema_of(table: str, names: tuple[str, ...]) -> Any:
    """Return the schema of some columns of a table, in this order."""
    return pa.schema([arrow_schema(table).field(name) for name in names])


@cache
def text_columns(table: str) -> tuple[str, ...]:
    """The columns that hold repeated strings."""
    return tuple(column.name for column in TABLES[table].columns if column.type == "text")


def empty_table(table: str) -> Any:
    """The table without rows."""
    return arrow_schema(table).empty_table()


def make_batch(table: str, columns: ColumnData) -> Any:
    """A RecordBatch of the declared columns; one that may be null may be left out.

    A value is a numpy array, a sequence or an Arrow array; a `text` column may
    also be a pair (indices, values), which costs nothing per row. An index of
    -1 in such a pair means null.
    """
    schema, declared = arrow_schema(table), TABLES[table].columns
    names, needed = _column_names(table)
    if not needed <= columns.keys() <= names:
        unknown, missing = sorted(columns.keys() - names), sorted(needed - columns.keys())
        raise UsageError(f"table {table}: unknown columns {unknown}, missing {missing}")
    rows = len(_values(next(iter(columns.values())))) if columns else 0
    arrays = [
        _make_array(table, column, columns[column.name])
        if column.name in columns
        else pa.nulls(rows, _TYPES[column.type])
        for column in declared
    ]
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise UsageError(f"table {table}: columns of different lengths {sorted(lengths)}")
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@cache
def former_names(table: str) -> Mapping[str, str]:
    """Return what older versions called the columns that have another name now."""
    return {each.name: each.formerly for each in TABLES[table].columns if each.formerly}


def typed_rows(kind: type[RowType], content: ArrowTable) -> list[RowType]:
    """Return the rows of an Arrow table as rows of a class, whose columns it has."""
    names = kind.names()
    columns = [content.column(name).to_pylist() for name in names]
    return [kind(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]


def conform(table: str, content: Any, names: Sequence[str]) -> Any:
    """Return those columns of a table that an older version wrote, as this one writes them.

    Columns that have another name now get that, and those it did not know are null.
    """
    known = content.schema.names
    now = {old: new for new, old in former_names(table).items() if new not in known}
    content = content.rename_columns([now.get(name, name) for name in known])
    for name in names:
        field = arrow_schema(table).field(name)
        if field.nullable and name not in content.schema.names:
            content = content.append_column(field, pa.nulls(len(content), field.type))
    return content.select(names)


def _values(column: Any) -> Any:
    return column[0] if isinstance(column, tuple) and isinstance(column[0], np.ndarray) else column


def _make_array(table: str, column: Column, values: Any) -> Any:
    try:
        array = _make_text(values) if column.type == "text" else _make_plain(values, column.type)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise UsageError(f"table {table}, column {column.name}: {error}") from error
    if array.null_count and not column.nullable:
        raise UsageError(f"table {table}, column {column.name}: it may not be null")
    return array


# Nothing below may use `cast`, `take` or `dictionary_encode` of Arrow: the first of
# them imports `pyarrow.compute`, which costs a recorder 120 ms and 15 MB.


def _make_plain(values: Any, wanted: str) -> Any:
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub":
        numbers: NDArray[Any] = values.astype(_DTYPES[wanted], copy=False)
        if values.dtype != numbers.dtype and (numbers != values).any():
            raise OverflowError(f"a value does not fit into {wanted}")
        return make_numbers(numbers)
    return _make_strings(values) if wanted == "string" else pa.array(values, _TYPES[wanted])


def make_numbers(numbers: NDArray[Any], absent: NDArray[np.bool_] | None = None) -> Any:
    """Numbers or truths of a column's own type, not copied; null where they are `absent`.

    `pa.array` would import `numpy.ma` to ask whether they are masked: 25 ms and 4 MB of a
    recorder.
    """
    is_bool = numbers.dtype == np.bool_
    data = np.packbits(numbers, bitorder="little") if is_bool else np.ascontiguousarray(numbers)
    present = None
    if absent is not None and absent.any():
        present = pa.py_buffer(np.packbits(~absent, bitorder="little"))
    return pa.Array.from_buffers(
        _TYPES[numbers.dtype.name], len(numbers), [present, pa.py_buffer(data)]
    )


def _make_strings(values: Any) -> Any:
    """Names come from users: one that is not Unicode is told as well as can be."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array([text and _writable(text) for text in values], pa.string())


def _writable(text: str) -> str:
    """What is no character, kept by Python as a lone surrogate, gives way to a mark."""
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:  # surrogates of another origin, such as JSON
        return text.encode("utf-8", "replace").decode("utf-8")


def _make_text(values: Any) -> Any:
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], np.ndarray):
        return make_text(values[0], values[1])
    if isinstance(values, pa.DictionaryArray):
        return make_text(text_indices(values), values.dictionary)
    row_of: dict[str, int] = {}
    rows = [-1 if text is None else row_of.setdefault(text, len(row_of)) for text in values]
    return make_text(np.array(rows, np.int32), list(row_of))


def make_text(indices: NDArray[np.integer[Any]], values: Sequence[str] | Any) -> Any:
    """A text column of row numbers of `values`; -1 is null."""
    dictionary = values if isinstance(values, pa.Array) else _make_strings(values)
    rows = make_numbers(indices.astype(np.int32, copy=False), indices < 0)
    # safe=True: an index beyond the dictionary is the caller's mistake, found here.
    return pa.DictionaryArray.from_arrays(rows, dictionary, safe=True)


def text_indices(texts: Any) -> NDArray[np.int32]:
    """The row numbers of a text column's values; -1 is null."""
    indices = texts.indices
    if indices.type != pa.int32():
        raise TypeError(f"text with row numbers of {indices.type}, not int32")
    if not indices.null_count:
        numbers: NDArray[np.int32] = indices.to_numpy()
        return numbers
    # A null's number is whatever lies there, so it is read past Arrow's back.
    raw = np.frombuffer(indices.buffers()[1], np.int32)
    present = np.unpackbits(np.frombuffer(indices.buffers()[0], np.uint8), bitorder="little")
    place = slice(indices.offset, indices.offset + len(indices))
    return np.where(present[place].astype(np.bool_), raw[place], np.int32(-1))


def take_rows(table: Any, rows: NDArray[np.integer[Any]]) -> Any:
    """The given rows of a table, in that order."""
    arrays = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_dictionary(field.type):
            texts = combine(column)
            arrays.append(make_text(text_indices(texts)[rows], texts.dictionary))
        elif pa.types.is_string(field.type) or (
            column.null_count and not pa.types.is_integer(field.type)
        ):
            values = column.to_pylist()
            arrays.append(pa.array([values[row] for row in rows.tolist()], field.type))
        elif column.null_count:
            numbers, present = _numbers_and_presence(combine(column))
            arrays.append(make_numbers(numbers[rows], ~present[rows]))
        else:
            arrays.append(make_numbers(column.to_numpy()[rows]))
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _numbers_and_presence(array: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """A column of integers with nulls: what lies there, and where something does."""
    raw: NDArray[Any] = np.frombuffer(array.buffers()[1], _DTYPES[str(array.type)])
    present = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    place = slice(array.offset, array.offset + len(array))
    return raw[place], present[place].astype(np.bool_)


def combine(column: Any) -> Any:
    """A column's chunks as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined
