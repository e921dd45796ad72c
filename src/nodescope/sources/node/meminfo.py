"""`/proc/meminfo` (fs/proc/meminfo.c): how memory is used, in bytes."""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import MalformedSource
from nodescope.sources.kernel_files import read_file

_UNITS = {b"kB": 1024}


def read_meminfo(proc: Path = Path("/proc")) -> dict[str, int]:
    """All lines, by name; sizes in bytes, counts (huge pages) as they are."""
    path = proc / "meminfo"
    return parse_meminfo(read_file(path), path)


def parse_meminfo(content: bytes, path: str | Path = "meminfo") -> dict[str, int]:
    """Parse `Name:  123 kB` lines."""
    found = {}
    for number, line in enumerate(content.splitlines(), 1):
        name, colon, rest = line.partition(b":")
        fields = rest.split()
        if not colon or not fields or not fields[0].isdigit():
            raise MalformedSource(path, f"not a name and a number: {line[:80]!r}", number)
        unit = _UNITS.get(fields[1], 1) if len(fields) > 1 else 1
        found[name.decode("ascii", "replace")] = int(fields[0]) * unit
    return found
