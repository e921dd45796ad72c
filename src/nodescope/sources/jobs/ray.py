"""Jobs of Ray that failed: from its dashboard's API, or from its event logs.

The API is `GET /api/jobs/` of the dashboard: a list of jobs with their status and
times in milliseconds. The event logs are `logs/events/event_*.log` of a session,
one JSON object a line, times in whole seconds. A session lies in `/tmp/ray`, which
anybody may write to: nothing in it is followed, waited for, or read without bounds,
and of the dashboard's address in it only the port is believed.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nodescope.errors import MalformedSource, SourceAbsent, SourceError, source_error
from nodescope.quantities import SECOND_NS
from nodescope.records.json import JsonObject
from nodescope.sources.places import Places
from nodescope.wire.json_fields import parse_json

_PORT = 8265
_TIMEOUT_S = 5.0
_MOST_BYTES = 16 << 20
_LOG_BYTES = 1 << 20
_MOST_LOGS = 64
_MOST_CHARACTERS = 1000
_ADDRESS = re.compile(rb"Dashboard head http address: \S+:(\d{1,5})\b")
_AND_LOGS = ", last available logs"  # and then the end of what the job printed
_COMPLETED = re.compile(r"Completed a ray job (\S+) with a status FAILED\.\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FailedJob:
    """A job that failed, and when, by the wall clock."""

    id: str
    wall_ns: int
    message: str
    entrypoint: str | None = None
    error_type: str | None = None
    exit_status: int | None = None


def find_session(places: Places) -> Path | None:
    """The folder of this node's Ray session; None if there is none."""
    folder = places.inside("/tmp/ray")  # noqa: S108 where Ray puts it; see above
    try:
        # Only its last part: the link is absolute, and the root may be mounted elsewhere.
        name = os.path.basename(os.readlink(folder / "session_latest"))
    except OSError:
        return None
    return folder / name if name.startswith("session_") else None


def find_dashboard(places: Places, session: Path | None) -> str | None:
    """The address of the dashboard to ask; None if no Ray is known to run."""
    asked = places.ray or ""
    if asked.startswith(("http://", "https://")):
        return asked
    if session is None:
        return None
    try:
        found = _ADDRESS.findall(_read_tail(session / "logs/dashboard.log", 0, _LOG_BYTES)[0])
    except SourceError:
        found = []
    return f"http://127.0.0.1:{int(found[-1]) if found else _PORT}"


def read_failed_jobs(address: str) -> list[FailedJob]:
    """Ask a dashboard."""
    return parse_jobs(_get(address, "/api/jobs/"), address)


def parse_jobs(content: bytes, address: str = "ray") -> list[FailedJob]:
    """The failed ones in what `/api/jobs/` answers."""
    listed = parse_json(content, address)
    if not isinstance(listed, list):
        raise MalformedSource(address, "not a list of jobs")
    jobs = (_parse_job(each) for each in listed if isinstance(each, dict))
    return [job for job in jobs if job is not None]


def _parse_job(job: JsonObject) -> FailedJob | None:
    name = job.get("submission_id") or job.get("job_id")
    ended = job.get("end_time") or job.get("start_time")
    if job.get("status") != "FAILED" or not isinstance(name, str):
        return None
    if not isinstance(ended, int | float) or not 0 < ended < 9e12:  # milliseconds
        return None
    code = job.get("driver_exit_code")
    return FailedJob(
        name,
        int(ended * 1_000_000),
        _text(str(job.get("message") or "").partition(_AND_LOGS)[0]) or "failed",
        _text(job.get("entrypoint")),
        _text(job.get("error_type")),
        code if type(code) is int else None,
    )


def _text(value: Any) -> str | None:
    return value[:_MOST_CHARACTERS] if isinstance(value, str) and value else None


def _get(address: str, path: str) -> bytes:
    """One GET. `http.client` is imported here: it is needed on nodes with Ray only."""
    import http.client

    parts = urlsplit(address)
    secure = parts.scheme == "https"
    try:
        make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = make(parts.hostname or "127.0.0.1", parts.port or _PORT, timeout=_TIMEOUT_S)
    except ValueError as error:
        raise SourceError(address, f"not an address: {error}") from error
    try:
        connection.request("GET", parts.path.rstrip("/") + path)
        answer = connection.getresponse()
        content: bytes = answer.read(_MOST_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, OSError) and error.errno == errno.ECONNREFUSED:
            raise SourceAbsent(address, "nobody answers there") from error
        raise SourceError(address, str(error) or type(error).__name__) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise SourceError(address, f"answers {answer.status} {answer.reason}")
    if len(content) > _MOST_BYTES:
        raise SourceError(address, f"answers with more than {_MOST_BYTES} bytes")
    return content


class EventLogs:
    """The event logs of a session, each read on from where it was left."""

    def __init__(self) -> None:
        self._read_to: dict[Path, int] = {}

    def read(self, session: Path) -> list[FailedJob]:
        """The failures logged since the last call."""
        folder = session / "logs/events"
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            raise source_error(folder, error) from error
        jobs: list[FailedJob] = []
        wanted = [name for name in names if name.startswith("event_") and name.endswith(".log")]
        wanted.sort(key=lambda name: "JOBS" not in name)  # each worker has a log, too
        for name in wanted[:_MOST_LOGS]:
            path = folder / name
            try:
                content, end = _read_tail(path, self._read_to.get(path, 0), _LOG_BYTES)
            except SourceError:
                continue  # it went, or is not ours to read
            whole = content.rfind(b"\n") + 1
            self._read_to[path] = end - (len(content) - whole)
            jobs += parse_events(content[:whole].splitlines())
        return jobs


def parse_events(lines: Iterable[bytes]) -> list[FailedJob]:
    """The failed jobs in lines of an event log; what is no event is passed over."""
    jobs = []
    for line in lines:
        if b"Completed a ray job" not in line:
            continue
        try:
            event = json.loads(line)
            match = _COMPLETED.match(event["message"])
            wall_ns = int(event["timestamp"]) * SECOND_NS
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if match is not None and 0 <= wall_ns < 1 << 63:
            jobs.append(FailedJob(match[1], wall_ns, match[2][:_MOST_CHARACTERS] or "failed"))
    return jobs


def _read_tail(path: Path, start: int, most: int) -> tuple[bytes, int]:
    """From `start` to the end, or the last `most` bytes of it; and where it ended."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise source_error(path, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise SourceAbsent(path, "not a regular file")
        if status.st_size < start:  # begun anew
            start = 0
        start = max(start, status.st_size - most)
        content = os.pread(descriptor, most, start)
        return content, start + len(content)
    except OSError as error:
        raise source_error(path, error) from error
    finally:
        os.close(descriptor)
