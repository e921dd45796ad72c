"""Tasks in uninterruptible sleep, and what they wait for: the table `blocked_tasks`.

Tasks are looked at only with a reason (`watches.block_reasons`) and within an allowance of CPU
(`watches.blocked_tasks`). A row is written once a task has been blocked for a second, again
each time that this grows by half (at least every minute), at the start of each segment, and
once more when it is over, as of the last look that found it blocked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from nodescope.errors import SourceDenied, SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.block_reasons import BlockReasons, Signs
from nodescope.recorder.watches.blocked_tasks import BlockedSuspect, BlockedTasks
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.event import Event
from nodescope.records.witness_tables import BlockedTaskRow
from nodescope.sources.cgroups.freezer import Freezers
from nodescope.sources.cgroups.of_process import parse_cgroup_of
from nodescope.sources.kernel_files import KeptFile, read_file
from nodescope.sources.node.identity import read_online_cpus
from nodescope.sources.node.load import parse_count, parse_load, read_procs_blocked
from nodescope.sources.node.pressure import parse_pressure
from nodescope.sources.places import Places
from nodescope.sources.processes.tasks import TaskFiles

_MOST_ROWS = 200  # of one look: the rest is told of at the next
_RESOURCES = ("io", "memory")


class BlockedTasksObserver:
    """Looks for blocked tasks while there is a reason to."""

    interval_ns = SECOND_NS
    patient = True  # `/proc/PID/cgroup` waits for a lock that others may keep

    def __init__(
        self,
        places: Places,
        reports: LogReports,
        cpu_clock: Callable[[], int] = time.thread_time_ns,
    ) -> None:
        self._places = places
        self._reports = reports
        self._looked_ns: int | None = None
        self._files = TaskFiles(places.proc)
        self._signs = _SignFiles(places.proc)
        cores = len(read_online_cpus(places.sys))
        self._reasons = BlockReasons(cores, partial(read_procs_blocked, places.proc))
        self._tasks = BlockedTasks(self._files, cpu_clock)
        self._freezers: Freezers | None = None
        self._whole = True
        self._is_first = True
        self._untold: list[BlockedSuspect] = []
        self._told: dict[int, BlockedTaskRow] = {}  # by thread, the last row of those blocked

    def begin_segment(self) -> None:
        self._whole = True

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        if self._is_first:
            self._is_first = False
            self._tell_refused(now_ns, said)
        since, self._looked_ns = self._looked_ns, now_ns
        # What the log reported before the first look is over, or shows itself again.
        is_told = since is not None and self._reports.told("hung_task", (), since)
        reason = self._reasons.take(now_ns, replace(self._signs.read(), is_told=is_told))
        self._tasks.look(now_ns, reason=reason is not None)
        if self._tasks.is_idle and not self._untold:
            self._whole = False
            return said
        due = self._untold + self._tasks.take(whole=self._whole)
        self._whole = False
        due, self._untold = due[:_MOST_ROWS], due[_MOST_ROWS:]
        for suspect in due:
            row = self._describe(suspect, now_ns)
            if row is not None:
                self._told[suspect.tid] = row
                said.add(row)
        for suspect in self._tasks.take_over():
            last = self._told.pop(suspect.tid, None)
            if last is not None and last.time_ns < suspect.seen_ns:
                said.add(last.replace(time_ns=suspect.seen_ns, blocked_ns=suspect.blocked_ns))
        return said

    def _tell_refused(self, now_ns: int, said: Observation) -> None:
        """Report that stacks of the kernel may not be read, by trying our own."""
        try:
            read_file(self._places.proc / "self/stack")
        except SourceDenied as error:
            message = f"what blocked tasks wait for is known by one function at most: {error}"
            said.events.append(Event(now_ns, "source_degraded", "blocked_tasks", message))
        except SourceError:
            pass  # a kernel without stacks (CONFIG_STACKTRACE)

    def _describe(self, suspect: BlockedSuspect, now_ns: int) -> BlockedTaskRow | None:
        stat = self._files.read_stat(suspect.tid)
        if stat is None or stat.state != "D":
            return None  # it went on meanwhile
        cgroups = self._files.read(suspect.tid, "cgroup")
        if self._freezers is None:
            self._freezers = Freezers(self._places)
        return BlockedTaskRow(
            time_ns=now_ns,
            pid=suspect.pid,
            tid=suspect.tid,
            comm=stat.comm,
            cgroup=None if cgroups is None else parse_cgroup_of(cgroups),
            blocked_ns=suspect.blocked_ns,
            waits_in=self._files.read_wait(suspect.tid),
            stack=self._files.read_kernel_stack(suspect.tid),
            frozen=None if cgroups is None else self._freezers.is_frozen(cgroups),
        )

    def close(self) -> None:
        self._files.close()
        self._signs.close()


class _SignFiles:
    """The files that are read every second, kept open; those that there are."""

    def __init__(self, proc: Path) -> None:
        self._load = _open(proc / "loadavg")
        self._hung, self._counts_down = _open(proc / "sys/kernel/hung_task_detect_count"), False
        if self._hung is None:
            self._hung = _open(proc / "sys/kernel/hung_task_warnings")
            self._counts_down = True
        kept = {name: _open(proc / "pressure" / name) for name in _RESOURCES}
        self._pressure = {name: file for name, file in kept.items() if file is not None}

    def read(self) -> Signs:
        """Read what tells of blocked tasks."""
        stalled: dict[str, int] = {}
        for resource, file in list(self._pressure.items()):
            try:
                some = parse_pressure(file.read_once()).some_us
            except SourceError:  # switched off (psi=0): it is there, and may not be read
                self._pressure.pop(resource).close()
                continue
            if some is not None:
                stalled[resource] = some
        load = None if self._load is None else parse_load(self._load.read_once())
        hung = None if self._hung is None else parse_count(self._hung.read_once())
        return Signs(stalled, load, -hung if hung is not None and self._counts_down else hung)

    def close(self) -> None:
        for file in (self._load, self._hung, *self._pressure.values()):
            if file is not None:
                file.close()


def _open(path: Path) -> KeptFile | None:
    try:
        return KeptFile(path)
    except SourceError:
        return None  # this kernel has no such file, or it is not for us


def make(setting: Setting) -> BlockedTasksObserver:
    """Make an observer of this node's blocked tasks."""
    return BlockedTasksObserver(setting.places, setting.log_reports)
