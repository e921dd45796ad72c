"""Soft interrupts served by each core: `/proc/softirqs` (fs/proc/softirqs.c).

One column for each possible core, online or not; one line for each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource


@dataclass(frozen=True, slots=True)
class Softirqs:
    """Times served since boot, by core."""

    net_rx: dict[int, int]
    net_tx: dict[int, int]
    every: dict[int, int]  # of every kind together


def parse_softirqs(content: bytes, path: str | Path = "softirqs") -> Softirqs:
    """Parse the whole file."""
    header, *lines = content.splitlines() or [b""]
    try:
        cpus = [int(name[3:]) for name in header.split() if name.startswith(b"CPU")]
        kinds = {}
        for line in lines:
            name, _, counts = line.partition(b":")
            kinds[name.strip()] = [int(count) for count in counts.split()]
        if not cpus or any(len(counts) != len(cpus) for counts in kinds.values()):
            raise MalformedSource(path, "not a column for each core")
        return Softirqs(
            net_rx=dict(zip(cpus, kinds[b"NET_RX"], strict=True)),
            net_tx=dict(zip(cpus, kinds[b"NET_TX"], strict=True)),
            every=dict(zip(cpus, map(sum, zip(*kinds.values(), strict=True)), strict=True)),
        )
    except KeyError as error:
        raise MalformedSource(path, f"no line {error.args[0].decode()}") from error
    except ValueError as error:
        raise MalformedSource(path, f"not numbers: {error}") from error
