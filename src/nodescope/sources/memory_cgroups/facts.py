"""Facts of the node needed to judge its memory cgroups; None where one cannot be read."""

from __future__ import annotations

import os

from nodescope.errors import SourceError
from nodescope.quantities import SECOND_NS
from nodescope.sources.kernel_files import read_file
from nodescope.sources.places import Places


def read_possible_cpus(places: Places) -> int:
    """Cores the kernel keeps memory for, present or not: `0-1`."""
    try:
        content = read_file(f"{places.sys}/devices/system/cpu/possible")
        return int(content.strip().replace(b",", b"-").rpartition(b"-")[2]) + 1
    except (SourceError, ValueError):
        return os.cpu_count() or 1


def read_memory_bytes(places: Places) -> int | None:
    """Memory of the node, the first line of `/proc/meminfo`."""
    try:
        name, amount, _ = read_file(f"{places.proc}/meminfo").split(b"\n", 1)[0].split()
        return int(amount) * 1024 if name == b"MemTotal:" else None
    except (SourceError, ValueError):
        return None


def read_uptime_ns(places: Places) -> int | None:
    """Time since boot, the first number of `/proc/uptime`."""
    try:
        return round(float(read_file(f"{places.proc}/uptime").split()[0]) * SECOND_NS)
    except (SourceError, ValueError, IndexError):
        return None
