"""Journal files made by a real systemd 252: 86 entries about a handful of units.

`compact` is the format of new files, `regular` that of older ones. One message
is long enough to be compressed with ZSTD.
"""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

FORMATS = ("compact", "regular")
OURS = 78  # of the entries, those with a message id that we read


@cache
def content(name: str) -> bytes:
    """The file as journald left it."""
    path = Path(__file__).parent / "journals" / f"{name}.journal.gz"
    return gzip.decompress(path.read_bytes())


def write(folder: Path, name: str, data: bytes | None = None) -> Path:
    """The file in a folder, as journald names the current one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "system.journal"
    path.write_bytes(content(name) if data is None else data)
    return path
