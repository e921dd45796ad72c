"""What Ray 2.x answers and logs; recorded in form, the names are made up."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.errors import MalformedSource, SourceAbsent
from nodescope.sources.jobs.ray import (
    EventLogs,
    FailedJob,
    find_dashboard,
    find_session,
    parse_events,
    parse_jobs,
)
from nodescope.sources.places import Places

JOBS: list[dict[str, Any]] = [
    {
        "type": "SUBMISSION", "job_id": "02000000", "submission_id": "raysubmit_A",
        "driver_info": None, "status": "FAILED", "entrypoint": "python train.py",
        "message": "Job entrypoint command failed with exit code 137, last available logs "
        "(truncated to 20,000 chars):\nsome lines", "error_type": None,
        "start_time": 1790000000123, "end_time": 1790000060456, "metadata": {},
        "runtime_env": {}, "driver_exit_code": 137,
    },
    {
        "type": "SUBMISSION", "job_id": None, "submission_id": "raysubmit_B", "status": "SUCCEEDED",
        "entrypoint": "ls", "message": "Job finished successfully.", "start_time": 1790000000123,
        "end_time": 1790000001000, "driver_exit_code": 0,
    },
    {
        "type": "SUBMISSION", "submission_id": "raysubmit_C", "status": "FAILED",
        "error_type": "JOB_SUPERVISOR_ACTOR_START_TIMEOUT", "message": "timed out",
        "entrypoint": "x", "start_time": 1790000000123, "end_time": None,
    },
    {"type": "DRIVER", "job_id": "03000000", "submission_id": None, "status": "RUNNING"},
]  # fmt: skip


def event(job: str, status: str, more: str = "") -> bytes:
    severity = "ERROR" if more else "INFO"
    message = f"Completed a ray job {job} with a status {status}.{more}"
    return json.dumps(
        {"event_id": "0a", "source_type": "JOBS", "source_hostname": "h", "source_pid": 7,
         "severity": severity, "label": "", "message": message, "timestamp": "1790000060",
         "custom_fields": {"submission_id": job}}
    ).encode()  # fmt: skip


def test_failed_jobs_with_their_end_and_code() -> None:
    first, second = parse_jobs(json.dumps(JOBS).encode())
    assert first == FailedJob(
        "raysubmit_A",
        1_790_000_060_456_000_000,
        "Job entrypoint command failed with exit code 137",
        "python train.py",
        None,
        137,
    )
    assert (second.id, second.error_type) == ("raysubmit_C", "JOB_SUPERVISOR_ACTOR_START_TIMEOUT")


@pytest.mark.parametrize("content", [b"", b"{}", b"<html>", b"[" * 100_000])
def test_what_is_no_list_of_jobs_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedSource):
        parse_jobs(content)


_VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats()


@given(st.lists(st.dictionaries(st.sampled_from([*JOBS[0]]), _VALUES) | _VALUES))
def test_any_list_is_read(listed: list[object]) -> None:
    for job in listed:
        if isinstance(job, dict):
            job["status"] = "FAILED"
    parse_jobs(json.dumps(listed).encode())


def test_failures_in_an_event_log() -> None:
    (job,) = parse_events(
        [
            b"",
            b"not an event: Completed a ray job",
            event("raysubmit_B", "SUCCEEDED"),
            event("raysubmit_A", "FAILED", " Job entrypoint command failed with exit code 1"),
        ]
    )
    assert (job.id, job.wall_ns) == ("raysubmit_A", 1_790_000_060_000_000_000)
    assert job.message == "Job entrypoint command failed with exit code 1"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp/ray/session_2026-11-16_12-00-00_1_2"
    (folder / "logs/events").mkdir(parents=True)
    os.symlink("/tmp/ray/" + folder.name, tmp_path / "tmp/ray/session_latest")
    return folder


def test_a_session_is_found_under_the_root(tmp_path: Path, session: Path) -> None:
    assert find_session(Places(tmp_path)) == session
    assert find_session(Places(tmp_path / "other")) is None


def test_the_dashboard_is_the_one_asked_for_or_the_session_s(tmp_path: Path, session: Path) -> None:
    places = Places(tmp_path)
    assert find_dashboard(places, None) is None
    assert find_dashboard(places, session) == "http://127.0.0.1:8265"
    (session / "logs/dashboard.log").write_text(
        "2026-11-16 12:00:00 INFO http_server_head.py:1 -- Dashboard head http address: "
        "10.0.0.7:8266\n"
    )
    assert find_dashboard(places, session) == "http://127.0.0.1:8266"
    assert find_dashboard(Places(tmp_path, ray="http://h:1"), session) == "http://h:1"
    assert find_dashboard(Places(tmp_path, ray="auto"), session) == "http://127.0.0.1:8266"
    assert find_dashboard(Places(tmp_path, ray="10.0.0.1:6379"), None) is None


def test_logs_are_read_on_from_where_they_were_left(session: Path) -> None:
    log, logs = session / "logs/events/event_JOBS.log", EventLogs()
    log.write_bytes(event("a", "FAILED", " x") + b"\n" + event("b", "FAILED", " x")[:20])
    assert [job.id for job in logs.read(session)] == ["a"]
    with log.open("ab") as file:
        file.write(event("b", "FAILED", " x")[20:] + b"\n")
    assert [job.id for job in logs.read(session)] == ["b"]
    assert logs.read(session) == []
    log.write_bytes(event("c", "FAILED", " x") + b"\n")  # begun anew
    assert [job.id for job in logs.read(session)] == ["c"]


def test_the_jobs_own_log_is_read_however_many_workers_there_are(session: Path) -> None:
    for worker in range(100):
        (session / f"logs/events/event_CORE_WORKER_{worker}.log").touch()
    (session / "logs/events/event_JOBS.log").write_bytes(event("a", "FAILED") + b"\n")
    assert [(job.id, job.message) for job in EventLogs().read(session)] == [("a", "failed")]


def test_nothing_in_the_folder_is_followed_or_waited_for(session: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(event("s", "FAILED", " x") + b"\n")
    os.symlink(secret, session / "logs/events/event_link.log")
    os.mkfifo(session / "logs/events/event_pipe.log")
    (session / "logs/events/event_folder.log").mkdir()
    assert EventLogs().read(session) == []


def test_without_logs_there_is_nothing_to_ask(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        EventLogs().read(tmp_path)
