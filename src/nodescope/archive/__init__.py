"""Recordings on disk. The contract stands in `nodescope.archive.layout`.

The write side (`ArchiveWriter`) is imported without the read side, which
brings in more of Arrow than a recorder should carry: take `Archive` from
`nodescope.archive.reader`.
"""

from nodescope.archive.description import Description, Extent, Gap
from nodescope.archive.retention import Frozen, Retention, freeze, read_frozen, unfreeze
from nodescope.archive.writer import ArchiveWriter

__all__ = [
    "ArchiveWriter",
    "Description",
    "Extent",
    "Frozen",
    "Gap",
    "Retention",
    "freeze",
    "read_frozen",
    "unfreeze",
]
