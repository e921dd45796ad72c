"""Makes a mark: the moment on both clocks, and who made it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from nodescope.archive.marks import MOST_CHARACTERS, Mark
from nodescope.clock import SystemClock, read_pair
from nodescope.records.json import JsonObject
from nodescope.sources.kernel_files import read_text

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def make_mark(
    text: str, kind: str, subject: str, at_wall_ns: int | None, details: JsonObject | None = None
) -> Mark:
    """A mark of the moment given, or of now."""
    now = read_pair(SystemClock())
    return Mark(
        id=f"{now.wall_ns}-{os.getpid()}",
        kind=kind,
        subject=subject[:MOST_CHARACTERS],
        text=text[:MOST_CHARACTERS],
        user=_user_name(),
        wall_ns=now.wall_ns if at_wall_ns is None else at_wall_ns,
        monotonic_ns=now.monotonic_ns if at_wall_ns is None else None,
        boot_id=read_text(_BOOT_ID),
        details=details or {},
    )


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have no name
        return str(os.getuid())
