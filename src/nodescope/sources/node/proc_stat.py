"""Per-core time: the `cpuN` lines of `/proc/stat` (fs/proc/stat.c), raw, in USER_HZ ticks.

Offline cores have no line. Kernels before 2.6.33 lack the last columns: missing
ones are not known to any kernel we meet and make the line malformed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.errors import MalformedSource, source_error
from nodescope.records.recorder_tables import CORE_STATES


def read_cores(proc: Path = Path("/proc")) -> npt.NDArray[np.int64]:
    """One row per online core: its number, then its `CORE_STATES`."""
    path = f"{proc}/stat"
    try:
        with open(path, "rb", buffering=0) as file:
            # The per-core lines come first; the interrupt line after them is long.
            return parse_cores(file.read(1 << 20), path)
    except OSError as error:
        raise source_error(path, error) from error


def parse_cores(content: bytes, path: str | Path = "stat") -> npt.NDArray[np.int64]:
    """Parse the head of `/proc/stat`, up to the first line that is not about a core."""
    end = content.find(b"\nintr")
    rows = []
    for number, line in enumerate(content[: end if end >= 0 else None].split(b"\n"), 1):
        if not line.startswith(b"cpu"):
            break
        if line[3:4] == b" ":
            continue
        fields = line[3:].split()
        if len(fields) != len(CORE_STATES) + 1:
            raise MalformedSource(path, f"not a core's line: {line[:80]!r}", number)
        rows.append(fields)
    try:
        numbers = [int(field) for fields in rows for field in fields]
        return np.array(numbers, np.int64).reshape(len(rows), len(CORE_STATES) + 1)
    except (ValueError, OverflowError) as error:
        raise MalformedSource(path, f"not numbers: {error}") from error
