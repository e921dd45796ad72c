"""How full file systems are (statvfs), and what ext4 counts of its own errors."""

from __future__ import annotations

import os
from pathlib import Path

from nodescope.sources.kernel_files import read_number, read_text
from nodescope.sources.limits.reading import Limit, TroubleCount

EXT4_ERRORS = "ext4_errors"
_EXT4_COUNTS = {"errors_count": EXT4_ERRORS, "warning_count": "ext4_warnings"}


def read_space(path: str, scope: str) -> list[Limit]:
    """Return bytes and inodes of a file system; what it does not count is left out.

    Space that is kept for root counts as not there, as `df` has it. btrfs counts no inodes.
    """
    try:
        answer = os.statvfs(path)
    except OSError:
        return []  # unmounted meanwhile
    found = []
    used = answer.f_blocks - answer.f_bfree
    most = used + answer.f_bavail
    if most > 0:
        found.append(Limit("disk", scope, used * answer.f_frsize, most * answer.f_frsize))
    if answer.f_files > 0:
        found.append(Limit("inodes", scope, answer.f_files - answer.f_ffree, answer.f_files))
    return found


def read_ext4_counts(sys: Path) -> list[TroubleCount]:
    """Return errors and warnings of every mounted ext4, by device."""
    found = []
    folder = sys / "fs/ext4"
    try:
        devices = sorted(os.listdir(folder))
    except OSError:
        return []
    for device in devices:
        for file, name in _EXT4_COUNTS.items():
            value = read_number(folder / device / file)
            if value is not None:
                found.append(TroubleCount(name, device, value))
    return found


def read_ext4_function(sys: Path, device: str) -> str | None:
    """Return the function of the kernel that met the last error."""
    return read_text(sys / "fs/ext4" / device / "last_error_func")
