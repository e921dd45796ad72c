"""Cgroups that reach their limit of tasks, or whose tasks are killed for want of memory.

The kernel logs `fork rejected by pids controller` once for each cgroup; the counter goes on.
OOM kills are always logged: their counter is an event only where lines of the log were lost or
are not read.
"""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.counted_trouble import CountedTrouble, CounterRise
from nodescope.recorder.watches.limit_rows import LimitRows
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.event import Event
from nodescope.records.json import JsonObject
from nodescope.sources.limits.reading import Limit, TroubleCount

_PIDS = "pids"
_PIDS_HITS = "pids_limit_hits"
_OOM_KILLS = "oom_kills"
_LATELY_NS = 180 * SECOND_NS  # every cgroup is read at least so often


class CgroupLimits:
    """Follows the limits of all cgroups, as they are read."""

    def __init__(self, reports: LogReports) -> None:
        self._reports = reports
        self._rows = LimitRows()
        self._trouble = CountedTrouble(reports)
        self._rises: list[tuple[CounterRise, JsonObject]] = []
        self._lately: dict[tuple[str, str], int] = {}  # kind and cgroup that rose, and when

    def begin_segment(self) -> None:
        """Write everything again."""
        self._rows.begin_segment()

    def add_tasks(
        self,
        said: Observation,
        now_ns: int,
        cgroup: str,
        used: int | None,
        most: int | None,
    ) -> None:
        """Add a row of the tasks of a cgroup, if their number is limited."""
        if used is not None and most is not None:
            self._rows.add_limit(said, now_ns, Limit(_PIDS, cgroup, used, most))

    def add_failed_forks(
        self, said: Observation, now_ns: int, cgroup: str, hits: int, most: int | None, *, new: bool
    ) -> None:
        """Follow the forks that failed because of the limit."""
        if hits:
            self._rows.add_count(said, now_ns, TroubleCount(_PIDS_HITS, cgroup, hits))
        rise = self._trouble.follow(now_ns, "pids_limit", _PIDS_HITS, cgroup, hits, new=new)
        if rise is not None:
            self._rises.append((rise, {"cgroup": cgroup, "limit": most}))

    def add_kills(
        self, now_ns: int, cgroup: str, kills: int, limit_bytes: int | None, *, new: bool
    ) -> None:
        """Follow the tasks of a cgroup that were killed for want of memory."""
        rise = self._trouble.follow(now_ns, "oom_kill", _OOM_KILLS, cgroup, kills, new=new)
        if rise is not None and not self._reports.is_whole(rise.since_ns):
            self._rises.append((rise, {"task_memcg": cgroup, "limit_bytes": limit_bytes}))

    def forget(self, cgroups: Iterable[str]) -> None:
        """Forget cgroups that are gone."""
        self._trouble.forget(cgroups)

    def take(self, now_ns: int) -> list[Event]:
        """Return the events that the log does not have.

        v2 counts for a cgroup what happened to those below it: only the lowest is reported,
        also if those above are read some rounds later.
        """
        for rise, _ in self._rises:
            self._lately[rise.kind, rise.subject] = now_ns
        for rise, details in self._rises:
            if not self._is_of_one_below(rise):
                self._trouble.report_rise(now_ns, rise, details)
        self._rises = []
        old = [key for key, time_ns in self._lately.items() if now_ns - time_ns > _LATELY_NS]
        for key in old:
            del self._lately[key]
        events = self._trouble.take(now_ns)
        for event in events:  # the node counts OOM kills as well
            self._reports.tell(event.time_ns, event.kind, (event.subject,))
        return events

    def _is_of_one_below(self, rise: CounterRise) -> bool:
        below = rise.subject.rstrip("/") + "/"
        return any(
            kind == rise.kind and path.startswith(below) and path != rise.subject
            for kind, path in self._lately
        )
