"""`/proc/meminfo` (fs/proc/meminfo.c): how memory is used, in bytes."""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import MalformedSource, source_error

_UNITS = {b"kB": 1024}


def read_meminfo(proc: Path = Path("/proc")) -> dict[str, int]:
    """All lines, by name; sizes in bytes, counts (huge pages) as they are."""
    path = proc / "meminfo"
    try:
        with open(path, "rb", buffering=0) as file:
            return parse_meminfo(file.read(64 << 10), path)
    except OSError as error:
        raise source_error(path, error) from error


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
