"""Readings of `/proc/stat` as recorded: raw counters by core and time."""

from __future__ import annotations

from dataclasses import dataclass

from nodescope.arrays import I64

STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True, slots=True)
class CoreReadings:
    """Counters of `/proc/stat` as recorded: rows sorted by core and time."""

    cpu: I64
    time_ns: I64  # wall
    ticks: I64  # rows × STATES
