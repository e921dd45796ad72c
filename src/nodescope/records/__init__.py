"""The vocabulary, declared once: tables and typed rows, events, views and actions."""

from nodescope.records.events import EVENT_KINDS, EventKind
from nodescope.records.node import NODE_TABLES
from nodescope.records.table import Column, ColumnKind, Table
from nodescope.records.tables import OPEN_TABLES, SEALED_TABLES, TABLES, WIDE_PATHS

__all__ = [
    "EVENT_KINDS",
    "NODE_TABLES",
    "OPEN_TABLES",
    "SEALED_TABLES",
    "TABLES",
    "WIDE_PATHS",
    "Column",
    "ColumnKind",
    "EventKind",
    "Table",
]
