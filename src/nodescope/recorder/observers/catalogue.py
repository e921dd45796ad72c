"""Every observer of the node, by name: which tables it fills, and how it is made.

A module of this package offers `make(setting) -> Observer`. Modules are imported
when the recorder starts, not before: one that is left out costs nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from dataclasses import dataclass

from nodescope.errors import UsageError
from nodescope.recorder.observer import Observer, Setting


@dataclass(frozen=True, slots=True)
class ObserverEntry:
    """One observer; its module bears its name."""

    name: str
    tables: tuple[str, ...]
    help: str


CATALOGUE: tuple[ObserverEntry, ...] = (
    ObserverEntry("kernel_log", ("kernel_log", "events"), "the kernel's log, classified"),
    ObserverEntry("marks", ("events",), "moments that somebody marked"),
    ObserverEntry("jobs", ("events",), "jobs of Ray that failed"),
    ObserverEntry("softnet", ("softnet", "interrupts", "events"),
          "packet work and device interrupts of each core, and its starvation"),
    ObserverEntry("nics", ("nics", "nic_queues", "nic_statistics", "events"), "network devices"),
    ObserverEntry("pressure", ("pressure",), "time lost for want of CPU, memory or I/O"),
    ObserverEntry("memory", ("memory",), "meminfo and vmstat"),
    ObserverEntry("memory_cgroups", ("memory_cgroups", "dying_parents", "events"),
          "memory cgroups tracked, visible, dying"),
    ObserverEntry("cgroup_churn", ("cgroup_churn",), "who makes and removes cgroups"),
    ObserverEntry("cgroups", ("cgroups", "pressure"), "CPU, throttling and memory of every cgroup"),
    ObserverEntry("cgroup_names", ("cgroup_names",), "pods, containers and units of cgroups"),
    ObserverEntry("units", ("units", "events"), "systemd units"),
    ObserverEntry("unit_insides", ("events",), "loops that hide inside running units"),
    ObserverEntry("unit_lines", ("events",), "what running units log of ends of what they started"),
    ObserverEntry("containers", ("containers", "events"), "containers and their ends"),
)  # fmt: skip

NAMES = tuple(entry.name for entry in CATALOGUE)


def make_observers(setting: Setting, without: Collection[str] = ()) -> dict[str, Observer]:
    """Make all but those left out by name; `all` leaves out every one."""
    unknown = [name for name in without if name not in (*NAMES, "all")]
    if unknown:
        raise UsageError(f"no observer {unknown[0]!r}", hint=f"there are {', '.join(NAMES)}")
    wanted = () if "all" in without else [name for name in NAMES if name not in without]
    return {name: _make(name, setting) for name in wanted}


def _make(name: str, setting: Setting) -> Observer:
    module = importlib.import_module(f"nodescope.recorder.observers.{name}")
    observer: Observer = module.make(setting)
    return observer
