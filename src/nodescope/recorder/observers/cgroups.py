"""Record the use and the limits of every live cgroup: `cgroups`, and `pressure` of v2 cgroups.

Two thousand cgroups have sixteen thousand files, and reading one takes ten
microseconds. So each round asks top-down who used CPU since the last one: below a
cgroup that used none, nobody did, and nobody is asked. Those that ran are read
anew; the others, and what hardly ever changes, are read in turn, each every
two minutes. When more ran than may be read in a round, the rest is read in the next:
counters lose nothing by it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import islice

from nodescope.errors import SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.cgroup_limits import CgroupLimits
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.node_tables import CgroupRow, PressureRow
from nodescope.sources.cgroups.hierarchies import LEAF_LINKS, read_hierarchies, walk
from nodescope.sources.cgroups.name_pattern import split_path
from nodescope.sources.cgroups.usage import Absent, UsageReader, Values
from nodescope.sources.node.pressure import Pressure, read_pressure_file
from nodescope.sources.places import Places

_TURNS = 12  # rounds until everything was read once
_MAX_READ = 1000  # cgroups that ran, in one round
_MAX_CGROUPS = 20_000
_MAX_ELSEWHERE = 200  # cgroups without an account of CPU time, in one round
_PRESSURES = ("cpu", "memory", "io")


@dataclass(slots=True)
class _Node:
    """One cgroup, as it was last read."""

    path: str
    turn: int
    usage_us: int | None = None
    values: Values = field(default_factory=dict)
    said: Values | None = None
    children: set[str] = field(default_factory=set)
    links: int = -1
    seen: int = -1  # the round in which it was last read whole
    pressure: dict[str, Pressure] = field(default_factory=dict)
    new: bool = False  # made since the first round: its counters began at zero
    task_limit: int | None = None
    failed_forks: int | None = None


class CgroupsObserver:
    """Follows the tree of cgroups."""

    interval_ns = 10 * SECOND_NS
    patient = False

    def __init__(self, places: Places, reports: LogReports | None = None) -> None:
        self._places = places
        self._limits = CgroupLimits(reports or LogReports())
        self._gone: list[str] = []
        self._reader: UsageReader | None = None
        self._nodes: dict[str, _Node] = {}
        self._elsewhere: dict[str, _Node] = {}  # not in the hierarchy that knows CPU time
        self._elsewhere_links: dict[str, int] = {}  # of directories, as they were last listed
        self._round = -1
        self._left = 0
        self._waiting: list[str] = []  # ran, and were not read for want of time
        self._whole = True
        self._said_pressure: dict[tuple[str, str], Pressure] = {}

    def begin_segment(self) -> None:
        self._whole = True
        self._said_pressure = {}
        self._limits.begin_segment()

    def observe(self, now_ns: int) -> Observation:
        if self._reader is None:
            ticks = os.sysconf("SC_CLK_TCK")
            self._reader = UsageReader(read_hierarchies(self._places), ticks)
            self._nodes["/"] = _Node("/", 0)
        self._round += 1
        self._left = _MAX_READ
        self._descend(self._reader)
        self._take_turns(self._reader)
        said = Observation()
        for node in (*self._nodes.values(), *self._elsewhere.values()):
            self._say(said, now_ns, node)
            if self._whole or node.seen == self._round:
                self._say_limits(said, now_ns, node)
        self._whole = False
        self._limits.forget(self._gone)
        self._gone = []
        said.events += self._limits.take(now_ns)
        return said

    # -- reading -----------------------------------------------------------

    def _descend(self, reader: UsageReader) -> None:
        """From the root down, as far as somebody used CPU time."""
        pending, self._waiting = ["/", *self._waiting], []
        while pending:
            node = self._nodes.get(pending.pop())
            if node is None or node.seen == self._round:
                continue
            try:
                cpu = _read_cpu(reader, node.path)
            except Absent:
                pending.extend(self._lose(reader, node))
                continue
            usage_us = cpu.get("usage_us")
            if node.seen >= 0 and usage_us is not None and usage_us == node.usage_us:
                continue
            if self._left > 0:
                self._left -= 1
                self._read(reader, node, cpu)
            else:
                self._waiting.append(node.path)
            self._follow_children(reader, node)
            pending.extend(node.children)

    def _read(self, reader: UsageReader, node: _Node, cpu: Values, *, seldom: bool = False) -> None:
        seldom = seldom or node.seen < 0
        values = dict(node.values)
        values.update(cpu)
        if seldom:
            values.update(reader.read_seldom(node.path))
            node.pressure = _read_pressure(reader, node.path)
        values.update(reader.read_often(node.path, values))
        node.values, node.usage_us, node.seen = values, cpu.get("usage_us"), self._round
        _read_task_limit(reader, node, seldom=seldom)

    def _take_turns(self, reader: UsageReader) -> None:
        """Whoever's turn it is, is read whether it ran or not."""
        turn = self._round % _TURNS
        for node in [each for each in self._nodes.values() if each.turn == turn]:
            if node.path not in self._nodes or node.seen < 0:
                continue  # went with its parent a moment ago, or is not even known yet
            try:
                self._read(reader, node, _read_cpu(reader, node.path), seldom=True)
            except Absent:
                self._lose(reader, node)
                continue
            self._follow_children(reader, node)
        if turn == 0:
            self._look_elsewhere(reader)
        else:
            self._look_again(reader)

    def _look_elsewhere(self, reader: UsageReader) -> None:
        """Cgroups that are in other hierarchies only; only what those account for is known."""
        before, self._elsewhere = self._elsewhere, {}
        self._elsewhere_links = {}
        for mount in reader.others:
            for path, _ in islice(walk(mount), _MAX_CGROUPS):
                if path not in self._nodes and path not in self._elsewhere:
                    node = before.get(path) or _Node(path, 0)
                    self._elsewhere[path] = node
                    self._read(reader, node, {}, seldom=True)

    def _look_again(self, reader: UsageReader) -> None:
        """Read those elsewhere that may have run, because a cgroup above them did.

        systemd gives units on v1 no account of CPU time: their memory and tasks would be read
        every two minutes only.
        """
        self._find_new_elsewhere(reader)
        ran = [
            node
            for node in self._elsewhere.values()
            if (above := self._find_above(node.path)) is None or above.seen == self._round
        ]
        first = self._round * _MAX_ELSEWHERE % max(1, len(ran))
        for node in [*ran[first:], *ran[:first]][:_MAX_ELSEWHERE]:
            self._read(reader, node, {})

    def _find_new_elsewhere(self, reader: UsageReader) -> None:
        """Take in new directories beside those that are known elsewhere."""
        for parent in list(dict.fromkeys(split_path(path)[0] for path in self._elsewhere)):
            for mount in reader.others:
                folder = f"{mount}{parent}"
                try:
                    links = os.stat(folder).st_nlink
                    if self._elsewhere_links.get(folder) == links:
                        continue
                    names = [each.name for each in os.scandir(folder) if each.is_dir()]
                except OSError:
                    continue  # not in that hierarchy, or gone
                self._elsewhere_links[folder] = links
                for name in names:
                    path = f"{'' if parent == '/' else parent}/{name}"
                    if path not in self._nodes and path not in self._elsewhere:
                        self._elsewhere[path] = _Node(path, 0, new=True)

    def _find_above(self, path: str) -> _Node | None:
        """Return the innermost cgroup above a path that has an account of CPU time."""
        while path != "/":
            path = split_path(path)[0]
            if path in self._nodes:
                return self._nodes[path]
        return None

    # -- the tree ----------------------------------------------------------

    def _follow_children(self, reader: UsageReader, node: _Node) -> None:
        """Take in directories that are new, and forget those that are gone."""
        folder = f"{reader.primary}{node.path}"
        try:
            links = os.stat(folder).st_nlink
            unchanged = links >= LEAF_LINKS and links == node.links
            if unchanged or (links == LEAF_LINKS and not node.children):
                return
            prefix = "" if node.path == "/" else node.path
            with os.scandir(folder) as entries:
                found = {
                    f"{prefix}/{entry.name}"
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                }
        except OSError:
            return  # gone meanwhile: the next round finds out
        node.links = links
        for path in node.children - found:
            self._forget(path)
        for path in found - node.children:
            if len(self._nodes) < _MAX_CGROUPS:
                turn = len(self._nodes) % _TURNS
                self._nodes[path] = _Node(path, turn, new=self._round > 0)
        node.children = found

    def _lose(self, reader: UsageReader, node: _Node) -> list[str]:
        """A cgroup is gone; what its parent has got instead comes back, to be read."""
        self._forget(node.path)
        parent = self._nodes.get(split_path(node.path)[0])
        if parent is None or parent is node:
            return []
        before = parent.children
        parent.children = before - {node.path}
        parent.links = -1
        self._follow_children(reader, parent)
        return list(parent.children - before)

    def _forget(self, path: str) -> None:
        pending = [path]
        while pending:
            node = self._nodes.pop(pending.pop(), None)
            if node is not None and node.path != "/":
                pending.extend(node.children)
                self._gone.append(node.path)

    # -- telling -----------------------------------------------------------

    def _say(self, said: Observation, now_ns: int, node: _Node) -> None:
        if node.seen < 0:
            return
        if self._whole or (node.seen == self._round and node.values != node.said):
            said.add(CgroupRow(time_ns=now_ns, cgroup=node.path, **node.values))
            node.said = node.values
        for resource, pressure in node.pressure.items():
            if self._said_pressure.get((node.path, resource)) != pressure:
                self._said_pressure[node.path, resource] = pressure
                row = PressureRow(
                    time_ns=now_ns,
                    cgroup=node.path,
                    resource=resource,
                    some_us=pressure.some_us,
                    full_us=pressure.full_us,
                )
                said.add(row)

    def _say_limits(self, said: Observation, now_ns: int, node: _Node) -> None:
        """Pass on what was read of a cgroup's limits."""
        tasks, most = node.values.get("tasks"), node.task_limit
        self._limits.add_tasks(said, now_ns, node.path, tasks, most)
        if node.seen != self._round:
            return
        if node.failed_forks is not None:
            self._limits.add_failed_forks(
                said, now_ns, node.path, node.failed_forks, most, new=node.new
            )
        kills = node.values.get("oom_kills")
        if kills is not None:
            limit = node.values.get("memory_limit_bytes")
            self._limits.add_kills(now_ns, node.path, kills, limit, new=node.new)
        node.new = False

    def close(self) -> None:
        """Nothing is held."""


def _read_task_limit(reader: UsageReader, node: _Node, *, seldom: bool) -> None:
    """Read the limit of tasks at a cgroup's turn; forks that failed also while it is near.

    One without a task has none that fails to fork.
    """
    if node.values.get("tasks") == 0 and not node.new:
        return
    if seldom:
        node.task_limit = reader.read_task_limit(node.path)
    if node.task_limit is None:
        return
    if seldom or (node.values.get("tasks") or 0) * 2 >= node.task_limit:
        node.failed_forks = reader.read_task_limit_hits(node.path)


def _read_cpu(reader: UsageReader, path: str) -> Values:
    try:
        return reader.read_cpu(path)
    except Absent:
        if path == "/":  # the root of v2 has no account on some kernels, and is never gone
            return {}
        raise


def _read_pressure(reader: UsageReader, path: str) -> dict[str, Pressure]:
    found = {}
    for resource in _PRESSURES:
        file = reader.pressure_path(path, resource)
        if file is None:
            break
        try:
            found[resource] = read_pressure_file(file)
        except SourceError:
            break  # not on this kernel, or not for cgroups: then for no resource
    return found


def make(setting: Setting) -> CgroupsObserver:
    """An observer of this node's cgroups."""
    return CgroupsObserver(setting.places, setting.log_reports)
