"""Every observer of the node, by name, and how it is made.

Which tables it fills is declared with the tables (`records.node`). A module of this package
offers `make(setting) -> Observer`. Modules are imported when the recorder starts, not before:
one that is left out costs nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection
from dataclasses import dataclass

from nodescope.errors import UsageError
from nodescope.recorder.observer import Observer, Setting
from nodescope.records.node_tables import NODE_TABLES


@dataclass(frozen=True, slots=True)
class ObserverEntry:
    """One observer; its module bears its name."""

    name: str
    help: str

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it fills; any observer may report events beside them."""
        return tuple(table.name for table in NODE_TABLES if self.name in table.observers)


CATALOGUE: tuple[ObserverEntry, ...] = (
    ObserverEntry("kernel_log", "the kernel's log, classified"),
    ObserverEntry("marks", "moments that somebody marked"),
    ObserverEntry("jobs", "jobs of Ray that failed"),
    ObserverEntry("softnet", "packet work and device interrupts of each core, and its starvation"),
    ObserverEntry("core_owners", "threads that have a core to themselves"),
    ObserverEntry("blocked_tasks", "tasks in uninterruptible sleep, and what they wait for"),
    ObserverEntry("nics", "network devices"),
    ObserverEntry("pressure", "time lost for want of CPU, memory or I/O"),
    ObserverEntry("memory", "meminfo and vmstat"),
    ObserverEntry("memory_cgroups", "memory cgroups tracked, visible, dying"),
    ObserverEntry("cgroup_churn", "who makes and removes cgroups"),
    ObserverEntry("cgroups", "CPU, throttling and memory of every cgroup"),
    ObserverEntry("limits", "limits of the node, counters of trouble, stalled disks, the clock"),
    ObserverEntry("file_systems", "file systems that fill up, fail or do not answer"),
    ObserverEntry("hardware", "errors and heat that the hardware counts"),
    ObserverEntry("cgroup_names", "pods, containers and units of cgroups"),
    ObserverEntry("units", "systemd units"),
    ObserverEntry("unit_insides", "loops that hide inside running units"),
    ObserverEntry("unit_lines", "what running units log of ends of what they started"),
    ObserverEntry("containers", "containers and their ends"),
)

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
