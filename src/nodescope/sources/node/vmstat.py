"""`/proc/vmstat` (mm/vmstat.c): what memory management did since boot, raw."""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import MalformedSource, source_error


def read_vmstat(proc: Path = Path("/proc")) -> dict[str, int]:
    """All counters, by name."""
    path = proc / "vmstat"
    try:
        with open(path, "rb", buffering=0) as file:
            return parse_vmstat(file.read(64 << 10), path)
    except OSError as error:
        raise source_error(path, error) from error


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
