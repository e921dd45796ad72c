"""CPU, throttling, memory and tasks of one cgroup, on v1, v2 or both.

Each controller is read where it is mounted: a cgroup is one path in all of
them. Files of v1 are Documentation/admin-guide/cgroup-v1/, of v2 cgroup-v2.rst.
CPU time of a cgroup includes that of the cgroups below it, in both versions: one
that used none has nothing below that did.

Files are opened anew each time: two thousand cgroups would take sixteen thousand
descriptors and 64 MB of the kernel's memory to keep.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from nodescope.errors import SourceAbsent
from nodescope.sources.cgroups.hierarchies import UNIFIED, Hierarchy

Values = dict[str, int | None]
Taking = Callable[[Values, bytes], None]

_MAX_BYTES = 4096
_UNLIMITED = 1 << 62  # v1 writes the largest number of pages for "no limit"
_FLAGS = os.O_RDONLY | os.O_CLOEXEC


def parse_number(content: bytes) -> int | None:
    """One number; `max` and whatever is none is None."""
    stripped = content.strip()
    return int(stripped) if stripped.isdigit() else None


def parse_flat(content: bytes) -> dict[bytes, int]:
    """Lines of a name and a number each; other lines are passed over."""
    found = {}
    for line in content.split(b"\n"):
        name, _, value = line.partition(b" ")
        if value.isdigit():
            found[name] = int(value)
    return found


def _taking(column: str) -> Taking:
    def take(values: Values, content: bytes) -> None:
        values[column] = parse_number(content)

    return take


def _take_throttling(values: Values, content: bytes) -> None:
    """`cpu.stat` of v1: its times are in nanoseconds."""
    said = parse_flat(content)
    time_ns = said.get(b"throttled_time")
    values["periods"] = said.get(b"nr_periods")
    values["throttled"] = said.get(b"nr_throttled")
    values["throttled_us"] = None if time_ns is None else time_ns // 1000


def _take_kills(values: Values, content: bytes) -> None:
    """`memory.oom_control` of v1; it counts since v4.13."""
    values["oom_kills"] = parse_flat(content).get(b"oom_kill")


def _take_events(values: Values, content: bytes) -> None:
    """`memory.events` of v2."""
    said = parse_flat(content)
    values["memory_limit_hits"] = said.get(b"max")
    values["oom_kills"] = said.get(b"oom_kill")
    values["oom_group_kills"] = said.get(b"oom_group_kill")  # v5.19


def _take_frozen(values: Values, content: bytes) -> None:
    """`cgroup.events` of v2; it tells since v5.2."""
    values["frozen"] = parse_flat(content).get(b"frozen")


def _take_freezer(values: Values, content: bytes) -> None:
    """`freezer.state` of v1."""
    values["frozen"] = int(content.strip() != b"THAWED")


_TAKE_MEMORY, _TAKE_LIMIT = _taking("memory_bytes"), _taking("memory_limit_bytes")
_TAKE_HITS, _TAKE_TASKS = _taking("memory_limit_hits"), _taking("tasks")


class Absent(Exception):  # not an error: a file of a cgroup is there or is not
    """The cgroup, or this file of it, is not there."""


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        raise Absent from None
    try:
        return os.read(descriptor, _MAX_BYTES)
    except OSError:
        raise Absent from None  # removed after it was opened
    finally:
        os.close(descriptor)


class UsageReader:
    """Reads cgroups of the hierarchies of one node."""

    def __init__(self, hierarchies: Sequence[Hierarchy], ticks_per_second: int) -> None:
        """Raises `SourceAbsent` if no hierarchy accounts for anything."""
        mounts: dict[str, str] = {}
        unified = None
        for hierarchy in hierarchies:
            mount = str(hierarchy.mount).rstrip("/")
            if hierarchy.name == UNIFIED:
                unified = mount
            else:
                mounts |= dict.fromkeys(hierarchy.controllers, mount)
        self._tick_us = 1_000_000 // ticks_per_second
        self._cpuacct, self._cpu = mounts.get("cpuacct"), mounts.get("cpu")
        self._memory, self._pids = mounts.get("memory"), mounts.get("pids")
        self._freezer = mounts.get("freezer")
        self._unified = unified
        primary = self._cpuacct or unified or self._memory
        if primary is None:
            raise SourceAbsent("cgroups", "no hierarchy accounts for CPU or memory")
        self.primary: str = primary
        """Where cgroups are looked for first: the hierarchy that knows CPU time."""
        others = [self._memory, self._pids, self._cpu]
        self.others = [each for each in dict.fromkeys(others) if each not in (None, primary)]
        """Where further ones may be."""

    def read_cpu(self, path: str) -> Values:
        """CPU time. Raises `Absent` when the cgroup is gone."""
        if self._cpuacct is not None:
            used = parse_number(_read(f"{self._cpuacct}{path}/cpuacct.usage"))
            return {"usage_us": None if used is None else used // 1000}
        if self._unified is None:
            return {}
        said = parse_flat(_read(f"{self._unified}{path}/cpu.stat"))
        return {
            "usage_us": said.get(b"usage_usec"),
            "user_us": said.get(b"user_usec"),
            "system_us": said.get(b"system_usec"),
            "periods": said.get(b"nr_periods"),
            "throttled": said.get(b"nr_throttled"),
            "throttled_us": said.get(b"throttled_usec"),
        }

    def read_often(self, path: str, known: Mapping[str, int | None]) -> Values:
        """Read values that change whenever the cgroup runs; `known` are those of the last time."""
        values: Values = {}
        if known.get("frozen"):  # it ran: it was thawed
            self._read_frozen(values, path)
        if self._cpuacct is not None:
            self._add(values, f"{self._cpuacct}{path}/cpuacct.stat", self._take_ticks)
        if self._cpu is not None and known.get("periods") != 0:
            self._add(values, f"{self._cpu}{path}/cpu.stat", _take_throttling)
        limited = known.get("memory_limit_bytes") is not None
        if self._memory is not None:
            usage = f"{self._memory}{path}/memory.usage_in_bytes"
            self._add(values, usage, _TAKE_MEMORY)
            if limited:
                self._read_hits(values, path)
        elif self._unified is not None:
            self._add(values, f"{self._unified}{path}/memory.current", _TAKE_MEMORY)
            if limited:
                self._read_hits(values, path)
        pids = self._pids or self._unified
        if pids is not None:
            self._add(values, f"{pids}{path}/pids.current", _TAKE_TASKS)
        return values

    def read_seldom(self, path: str) -> Values:
        """Read values that rarely change: limits, how often they were hit, whether it is frozen."""
        values: Values = {}
        self._read_frozen(values, path)
        if self._cpu is not None:
            self._add(values, f"{self._cpu}{path}/cpu.stat", _take_throttling)
        if self._memory is not None:
            limit = f"{self._memory}{path}/memory.limit_in_bytes"
            self._add(values, limit, _TAKE_LIMIT)
        elif self._unified is not None:
            self._add(values, f"{self._unified}{path}/memory.max", _TAKE_LIMIT)
        if (values.get("memory_limit_bytes") or 0) >= _UNLIMITED:
            values["memory_limit_bytes"] = None
        self._read_hits(values, path, limited=values.get("memory_limit_bytes") is not None)
        return values

    def read_task_limit(self, path: str) -> int | None:
        """Read how many tasks there may be (`pids.max`); None if that is not limited."""
        return self._read_pids(path, "pids.max", parse_number)

    def read_task_limit_hits(self, path: str) -> int | None:
        """Read how often a fork failed because of it (`pids.events`; v4.8 and later)."""
        return self._read_pids(path, "pids.events", lambda said: parse_flat(said).get(b"max"))

    def _read_pids(self, path: str, name: str, parse: Callable[[bytes], int | None]) -> int | None:
        pids = self._pids or self._unified
        if pids is None:
            return None
        try:
            return parse(_read(f"{pids}{path}/{name}"))
        except Absent:
            return None  # the root has neither file

    def pressure_path(self, path: str, resource: str) -> str | None:
        """The file that tells of this cgroup's pressure; None where there cannot be one."""
        if self._unified is None or path == "/":
            return None
        return f"{self._unified}{path}/{resource}.pressure"

    def _read_frozen(self, values: Values, path: str) -> None:
        """Whether its tasks are stopped: by v2, else by the freezer of v1."""
        if self._unified is not None:
            self._add(values, f"{self._unified}{path}/cgroup.events", _take_frozen)
        if self._freezer is not None and not values.get("frozen"):
            self._add(values, f"{self._freezer}{path}/freezer.state", _take_freezer)

    def _read_hits(self, values: Values, path: str, *, limited: bool = True) -> None:
        """How often the limit was met, and who was killed."""
        if self._memory is not None:
            if limited:
                self._add(values, f"{self._memory}{path}/memory.failcnt", _TAKE_HITS)
            self._add(values, f"{self._memory}{path}/memory.oom_control", _take_kills)
        elif self._unified is not None:
            self._add(values, f"{self._unified}{path}/memory.events", _take_events)

    @staticmethod
    def _add(values: Values, path: str, take: Taking) -> None:
        try:
            take(values, _read(path))
        except Absent:
            pass  # this controller does not account for it

    def _take_ticks(self, values: Values, content: bytes) -> None:
        said = parse_flat(content)
        for name, column in ((b"user", "user_us"), (b"system", "system_us")):
            ticks = said.get(name)
            values[column] = None if ticks is None else ticks * self._tick_us
