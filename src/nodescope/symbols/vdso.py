"""The vdso: code the kernel maps into every process, backed by no file.

Ours is the same image as everyone's (vdso(7)), so it is read once from our own
memory. Only for 64-bit processes: a 32-bit process has another vdso, which is
refused like every 32-bit image.
"""

from __future__ import annotations

import os
from pathlib import Path

from nodescope.symbols.file_bytes import OPEN_FLAGS, MemoryBytes
from nodescope.symbols.unresolved import Reason, Unresolvable, reason_of

VDSO = "[vdso]"
MAX_VDSO_BYTES = 256 << 10
_MAX_MAPS_BYTES = 1 << 20


def read_vdso(proc_root: Path = Path("/proc")) -> MemoryBytes:
    """The vdso's image; raises `Unresolvable`."""
    own = proc_root / "self"
    try:
        start, end = parse_vdso_range((own / "maps").read_bytes()[:_MAX_MAPS_BYTES])
        fd = os.open(own / "mem", OPEN_FLAGS)
        try:
            data = os.pread(fd, min(end - start, MAX_VDSO_BYTES), start)
        finally:
            os.close(fd)
    except OSError as error:
        raise Unresolvable(VDSO, reason_of(error), error.strerror or "") from error
    return MemoryBytes(data, VDSO)


def parse_vdso_range(maps: bytes) -> tuple[int, int]:
    """Where `/proc/self/maps` says the vdso is; raises `Unresolvable`."""
    for line in maps.splitlines():
        if line.endswith(b"[vdso]"):
            start, _, end = line.split(b" ", 1)[0].partition(b"-")
            return int(start, 16), int(end, 16)
    raise Unresolvable(VDSO, Reason.ABSENT)
