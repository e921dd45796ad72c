"""`/proc/vmstat` (mm/vmstat.c): what memory management did since boot, raw."""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import MalformedSource
from nodescope.sources.kernel_files import read_file


def read_vmstat(proc: Path = Path("/proc")) -> dict[str, int]:
    """All counters, by name."""
    path = proc / "vmstat"
    return parse_vmstat(read_file(path), path)


def parse_vmstat(content: bytes, path: str | Path = "vmstat") -> dict[str, int]:
    """Parse `name 123` lines."""
    fields = content.split()
    names, values = fields[::2], fields[1::2]
    try:
        return {
            name.decode("ascii", "replace"): int(value)
            for name, value in zip(names, values, strict=True)
        }
    except ValueError as error:
        raise MalformedSource(path, f"not names and numbers: {error}") from error
