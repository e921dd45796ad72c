"""The vocabulary, declared once: tables and typed rows, events, views and actions."""

from nodescope.records.node_tables import NODE_TABLES
from nodescope.records.table import Column, ColumnKind, Table
from nodescope.records.tables import OPEN_TABLES, SAMPLE_TABLES, SEALED_TABLES, TABLES, WIDE_PATHS

__all__ = [
    "NODE_TABLES",
    "OPEN_TABLES",
    "SAMPLE_TABLES",
    "SEALED_TABLES",
    "TABLES",
    "WIDE_PATHS",
    "Column",
    "ColumnKind",
    "Table",
]
