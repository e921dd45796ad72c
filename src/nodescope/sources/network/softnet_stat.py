"""Packet work of each core: `/proc/net/softnet_stat` (net/core/net-procfs.c), hexadecimal.

A line is an online core. Columns: packets processed, dropped because the
backlog was full, times the softirq had to stop with work left (time_squeeze).
The 12th is the length of the backlog and the 13th the core's number, both
since 5.10 (7d58e6555870); before, lines are the online cores in order.
The counters are 32 bits wide and wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource

_BACKLOG, _CPU = 11, 12


@dataclass(frozen=True, slots=True)
class SoftnetCore:
    """One core's counters, raw."""

    cpu: int
    processed: int
    dropped: int
    squeezed: int
    backlog: int | None  # None: this kernel does not tell


def parse_softnet_line(
    line: bytes, position: int, online: Sequence[int], path: str | Path = "softnet_stat"
) -> SoftnetCore:
    """One line; `online` says which core it is on kernels that do not."""
    fields = line.split()
    try:
        told = len(fields) > _CPU
        return SoftnetCore(
            cpu=int(fields[_CPU], 16) if told else online[position],
            processed=int(fields[0], 16),
            dropped=int(fields[1], 16),
            squeezed=int(fields[2], 16),
            backlog=int(fields[_BACKLOG], 16) if told else None,
        )
    except (ValueError, IndexError) as error:
        raise MalformedSource(path, f"not a core's line: {line[:80]!r}", position + 1) from error


def parse_softnet(
    content: bytes, online: Sequence[int], path: str | Path = "softnet_stat"
) -> list[SoftnetCore]:
    """All lines."""
    lines = enumerate(content.splitlines())
    return [parse_softnet_line(line, position, online, path) for position, line in lines]
