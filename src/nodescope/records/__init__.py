"""The shared vocabulary: every table and column, declared once."""

from nodescope.records.tables import (
    OPEN_TABLES,
    SEALED_TABLES,
    TABLES,
    Column,
    Kind,
    Table,
)

__all__ = ["OPEN_TABLES", "SEALED_TABLES", "TABLES", "Column", "Kind", "Table"]
