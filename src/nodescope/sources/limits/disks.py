"""Requests to block devices: how many wait, and how many completed (`/proc/diskstats`).

Documentation/admin-guide/iostats.rst: fields 1, 5, 12 and 16 count completed reads, writes,
discards (v4.18) and flushes (v5.5); field 9 is the requests in flight. Writes that a cgroup's
limit holds back are not in flight.
"""

from __future__ import annotations

from typing import NamedTuple

_FIRST = 3  # after the numbers and the name of the device
_COMPLETED = (0, 4, 11, 15)
_WAITING = 8


class Disk(NamedTuple):
    """Requests to one device."""

    waiting: int
    completed: int


def parse_diskstats(content: bytes) -> dict[str, Disk]:
    """Return every device and partition that ever had a request, by name."""
    found = {}
    for line in content.split(b"\n"):
        fields = line.split()
        numbers = fields[_FIRST:]
        if len(numbers) <= _WAITING:
            continue
        try:
            waiting = int(numbers[_WAITING])
            completed = sum(int(numbers[at]) for at in _COMPLETED if at < len(numbers))
        except ValueError:
            continue
        if waiting or completed:
            found[fields[2].decode("utf-8", "replace")] = Disk(waiting, completed)
    return found
