"""Jobs of Ray that failed, into events: from the dashboard, else from its event logs."""

from __future__ import annotations

from nodescope.clock import SystemClock, read_pair
from nodescope.errors import SourceAbsent, SourceError
from nodescope.ingest.job_events import job_event
from nodescope.ingest.observation import Observation
from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.recorder.already_recorded import read_told_names
from nodescope.recorder.observer import Setting
from nodescope.records.event_details import JobDetails
from nodescope.sources.jobs.ray import (
    EventLogs,
    FailedJob,
    find_dashboard,
    find_session,
    read_failed_jobs,
)

_HISTORY_NS = HOUR_NS  # what failed longer ago is nothing that happened here and now
_MOST_REMEMBERED = 10_000


class JobsObserver:
    """Asks now and then; a job is told once, also across restarts."""

    interval_ns = 15 * SECOND_NS
    patient = True  # a dashboard may be slow

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._logs = EventLogs()
        self._told: dict[str, None] | None = None  # in the order they were told

    def begin_segment(self) -> None:
        """Nothing is said again: a job failed once."""

    def observe(self, now_ns: int) -> Observation:
        offset_ns = read_pair(SystemClock()).offset_ns
        since_ns = now_ns + offset_ns - _HISTORY_NS
        jobs = [job for job in self._read() if job.wall_ns >= since_ns]
        if self._told is None:
            self._told = dict.fromkeys(self._read_told(since_ns) if jobs else ())
        said = Observation()
        for job in jobs:
            if job.id not in self._told:
                self._told[job.id] = None
                said.events.append(job_event(job, job.wall_ns - offset_ns))
        while len(self._told) > _MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        return said

    def _read_told(self, since_wall_ns: int) -> set[str]:
        archive = self._setting.archive
        return read_told_names(archive, JobDetails, lambda each: each.job, since_wall_ns)

    def _read(self) -> list[FailedJob]:
        places = self._setting.places
        session = find_session(places)
        address = find_dashboard(places, session)
        if address is None:
            raise SourceAbsent(places.inside("/tmp/ray"), "no Ray here")  # noqa: S108
        try:
            return read_failed_jobs(address)
        except SourceError:
            if session is None:
                raise
        return self._logs.read(session)

    def close(self) -> None:
        """There is nothing to let go of."""


def make(setting: Setting) -> JobsObserver:
    """The observer of the jobs of this node's Ray, or of the one it is pointed at."""
    return JobsObserver(setting)
