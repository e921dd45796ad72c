"""Pressure stall information: `/proc/pressure` and `*.pressure` of v2 cgroups (v4.20).

    some avg10=0.00 avg60=0.00 avg300=0.00 total=12345
    full avg10=0.00 avg60=0.00 avg300=0.00 total=2345

Only the totals are taken: time in microseconds, from which any average follows.
`cpu` has no `full` before v5.13, `irq` (v6.1) has no `some`.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource, SourceAbsent, SourceError, source_error
from nodescope.sources.places import Places

RESOURCES = ("cpu", "memory", "io", "irq")
_MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Pressure:
    """Time lost since boot, or since the cgroup was made; None where it is not told."""

    some_us: int | None
    full_us: int | None


def read_pressure(places: Places) -> dict[str, Pressure]:
    """The node's, by resource. Raises `SourceAbsent` on kernels without it."""
    found: dict[str, Pressure] = {}
    for resource in RESOURCES:
        try:
            found[resource] = read_pressure_file(places.proc / "pressure" / resource)
        except SourceAbsent:
            continue  # this kernel does not know this resource
    if not found:
        raise SourceAbsent(places.proc / "pressure", "this kernel tells no pressure (psi=0?)")
    return found


def read_pressure_file(path: Path | str) -> Pressure:
    """One file of either kind."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.read(descriptor, _MAX_BYTES)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _explain(path, error) from error
    return parse_pressure(content, path)


def _explain(path: Path | str, error: OSError) -> SourceError:
    # Built in and switched off (psi=0, or default on some distributions): ENOTSUP on reading.
    if error.errno == errno.EOPNOTSUPP:
        return SourceAbsent(path, "switched off", hint="boot with psi=1")
    return source_error(path, error)


def parse_pressure(content: bytes, path: Path | str = "pressure") -> Pressure:
    """Parse one file."""
    totals: dict[bytes, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line:
            continue
        kind, _, rest = line.partition(b" ")
        _, found, total = rest.rpartition(b"total=")
        if not found or not total.isdigit():
            raise MalformedSource(path, f"no total: {line[:80]!r}", number)
        totals[kind] = int(total)
    return Pressure(totals.get(b"some"), totals.get(b"full"))
