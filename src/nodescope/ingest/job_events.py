"""Failed jobs as events."""

from __future__ import annotations

from nodescope.records.event import Event
from nodescope.records.event_details import JobDetails
from nodescope.sources.jobs.ray import FailedJob


def job_event(job: FailedJob, time_ns: int) -> Event:
    """Return the event of a job that failed."""
    details = JobDetails(
        job=job.id,
        entrypoint=job.entrypoint,
        error_type=job.error_type,
        exit_status=job.exit_status,
    )
    return Event(time_ns, "job_failed", job.id, job.message.partition("\n")[0], details=details)
