"""Failed jobs, asked from a real server on loopback that answers as Ray's dashboard does."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.sources.jobs.test_ray import event

from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.errors import SourceAbsent, SourceError
from nodescope.ingest.event_rows import event_rows
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers import jobs
from nodescope.records.columns import columns_of
from nodescope.records.event import Event
from nodescope.records.event_details import JobDetails
from nodescope.sources.places import Places


class Dashboard:
    """Answers with `listed`, or with an error."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self.status = 200
        dashboard = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(dashboard.status if self.path == "/api/jobs/" else 404)
                self.end_headers()
                self.wfile.write(json.dumps(dashboard.listed).encode())

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def fail(self, name: str, seconds_ago: float = 1.0) -> None:
        ended = int((time.time() - seconds_ago) * 1000)
        self.listed.append(
            {"submission_id": name, "status": "FAILED", "entrypoint": "train", "message": "exit 1",
             "start_time": ended - 1000, "end_time": ended, "driver_exit_code": 1}
        )  # fmt: skip

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    served = Dashboard()
    yield served
    served.close()


def _observer(dashboard: Dashboard, tmp_path: Path) -> jobs.JobsObserver:
    return jobs.make(Setting(Places(tmp_path, ray=dashboard.address), tmp_path / "archive"))


def _told(observer: jobs.JobsObserver) -> list[Event]:
    return observer.observe(time.monotonic_ns()).events


def test_each_failure_is_told_once(dashboard: Dashboard, tmp_path: Path) -> None:
    observer = _observer(dashboard, tmp_path)
    assert _told(observer) == []
    dashboard.fail("raysubmit_A")
    (first,) = _told(observer)
    assert (first.kind, first.subject, first.message) == ("job_failed", "raysubmit_A", "exit 1")
    assert first.details == JobDetails(job="raysubmit_A", entrypoint="train", exit_status=1)
    dashboard.fail("raysubmit_B")
    assert [told.subject for told in _told(observer)] == ["raysubmit_B"]


def test_what_failed_long_ago_is_not_told(dashboard: Dashboard, tmp_path: Path) -> None:
    dashboard.fail("old", seconds_ago=2 * 3600)
    assert _told(_observer(dashboard, tmp_path)) == []


def test_a_restart_does_not_tell_again(dashboard: Dashboard, tmp_path: Path) -> None:
    dashboard.fail("raysubmit_A")
    (told,) = _told(_observer(dashboard, tmp_path))
    clock = SystemClock()
    with ArchiveWriter.open(
        tmp_path / "archive", node={"boot_id": "b"}, clock=clock, tick_ns=1000
    ) as writer:
        told = replace(told, time_ns=clock.monotonic_ns())
        writer.append("events", columns_of(event_rows([told])))
    dashboard.fail("raysubmit_B")
    assert [each.subject for each in _told(_observer(dashboard, tmp_path))] == ["raysubmit_B"]


def test_a_dashboard_that_refuses_is_a_failure_of_the_source(
    dashboard: Dashboard, tmp_path: Path
) -> None:
    dashboard.status = 500
    with pytest.raises(SourceError, match="500"):
        _told(_observer(dashboard, tmp_path))


def test_without_ray_there_is_nothing_to_observe(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        _told(jobs.make(Setting(Places(tmp_path), tmp_path / "archive")))


def test_where_nobody_answers_the_logs_do(tmp_path: Path) -> None:
    session = tmp_path / "tmp/ray/session_1"
    (session / "logs/events").mkdir(parents=True)
    os.symlink("/tmp/ray/session_1", tmp_path / "tmp/ray/session_latest")
    line = json.loads(event("raysubmit_L", "FAILED", " exit 3"))
    line["timestamp"] = str(int(time.time()))
    (session / "logs/events/event_JOBS.log").write_text(json.dumps(line) + "\n")
    # A port that is bound and not listened on: nobody else can come to answer there.
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        places = Places(tmp_path, ray=f"http://127.0.0.1:{closed.getsockname()[1]}")
        observer = jobs.make(Setting(places, tmp_path / "archive"))
        assert [told.subject for told in _told(observer)] == ["raysubmit_L"]
        assert _told(observer) == []
