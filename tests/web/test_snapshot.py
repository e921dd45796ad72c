"""A recording that grows, vanishes and comes back under the server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.analysis.conftest import START, HandClock
from tests.waiting import wait_for
from tests.web.conftest import open_client

from nodescope.archive.writer import ArchiveWriter
from nodescope.errors import ArchiveError, NothingRecorded
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.web.snapshot import ServedArchive


def beat(writer: ArchiveWriter, clock: HandClock, ticks: int = 0) -> None:
    """A second passes, and is written."""
    clock.now += SECOND_NS
    states = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest",
              "guest_nice")  # fmt: skip
    writer.append("cores", {"cpu": [0], "time_ns": [clock.now],
                            **{state: [clock.now // 10**7] for state in states}})  # fmt: skip
    writer.append("heartbeats", {
        "time_ns": [clock.now], "wall_ns": [clock.wall_ns()], "cpu_ns": [0], "rss_bytes": [0],
        "written_bytes": [0], "samples": [0], "lost": [0], "late_ns": [0], "frequency_hz": [97],
    })  # fmt: skip
    writer.flush()


def open_writer(path: Path, clock: HandClock) -> ArchiveWriter:
    return ArchiveWriter.open(path, node={"name": "n", "boot_id": "b"}, clock=clock, tick_ns=1000)


def ends_at(client: TestClient) -> float:
    answer = client.get("/api/recording")
    assert answer.status_code == 200, answer.text
    return float(answer.json()["to_ms"])


def test_it_grows_before_our_eyes(tmp_path: Path) -> None:
    clock = HandClock()
    with open_writer(tmp_path / "a", clock) as writer, open_client(tmp_path / "a") as client:
        for _ in range(3):
            beat(writer, clock)
        first = ends_at(client)
        assert client.get("/api/recording").json()["live"] is True
        beat(writer, clock)
        wait_for(lambda: ends_at(client) > first, "the next second")
        writer.seal_segment()
        for _ in range(3):
            beat(writer, clock)
        now_ms = (START + clock.now - 1_000 * SECOND_NS) / 1e6
        wait_for(lambda: abs(ends_at(client) - now_ms) < 1, "the next segment")
    wait_for(lambda: client_live(tmp_path / "a") is False, "the end of recording")


def client_live(path: Path) -> bool:
    return ServedArchive(path).snapshot().live


def test_what_is_sealed_keeps_its_revision_while_it_grows(tmp_path: Path) -> None:
    clock = HandClock()
    with open_writer(tmp_path / "a", clock) as writer:
        for _ in range(3):
            beat(writer, clock)
        writer.seal_segment()
        recording = ServedArchive(tmp_path / "a")
        first = recording.snapshot()
        sealed = Window(START, first.extent.sealed_to_ns)
        beat(writer, clock)
        wait_for(lambda: recording.snapshot() is not first, "another snapshot")
        second = recording.snapshot()
        assert second.revision != first.revision
        assert second.revision_of(sealed) == first.revision_of(sealed)
        assert second.segments[0] is first.segments[0]  # not read again
        whole = Window(START, second.extent.to_ns)
        assert second.revision_of(whole) != first.revision_of(whole)


def test_one_that_is_removed_is_told_plainly_and_found_again(
    small_story: Path, tmp_path: Path
) -> None:
    path = tmp_path / "archive"
    shutil.copytree(small_story, path)
    with open_client(path) as client:
        before = client.get("/api/recording").json()
        path.rename(tmp_path / "away")
        wait_for(lambda: client.get("/api/recording").status_code != 200, "that it is gone")
        answer = client.get("/api/recording")
        assert answer.status_code == 503
        assert str(path) in answer.json()["error"]
        assert answer.json()["hint"]
        assert answer.headers["retry-after"]
        assert client.get("/api/flame").status_code == 503
        (tmp_path / "away").rename(path)
        wait_for(lambda: client.get("/api/recording").status_code == 200, "it back")
        assert client.get("/api/recording").json()["to_ms"] == before["to_ms"]


def test_another_one_in_its_place_is_not_mixed_up(small_story: Path, tmp_path: Path) -> None:
    path, clock = tmp_path / "archive", HandClock()
    shutil.copytree(small_story, path)
    with open_client(path) as client:
        assert client.get("/api/cores").status_code == 200
        shutil.rmtree(path)
        with open_writer(path, clock) as writer:
            for _ in range(5):
                beat(writer, clock)
        wait_for(
            lambda: client.get("/api/recording").json().get("cpus") == [0], "the new recording"
        )


def test_one_segment_taken_meanwhile_is_not_missed(small_story: Path, tmp_path: Path) -> None:
    """Retention removes the oldest while somebody looks at all of it."""
    path = tmp_path / "archive"
    shutil.copytree(small_story, path)
    with open_client(path) as client:
        total = client.get("/api/flame").json()["total"]
        oldest = min((path / "segments").iterdir())
        oldest.rename(path / "segments" / f".{oldest.name}")
        answer = client.get("/api/flame", params={"mode": "user"})
        assert answer.status_code == 200
        assert 0 < answer.json()["total"] < total


def test_an_empty_archive_says_so(tmp_path: Path) -> None:
    with pytest.raises(NothingRecorded, match="nothing is recorded in it yet"):
        ServedArchive(tmp_path).snapshot()
    with pytest.raises(ArchiveError, match="not there"):
        ServedArchive(tmp_path / "none").snapshot()
    open_writer(tmp_path / "a", HandClock()).close()
    with open_client(tmp_path / "a") as client:
        answer = client.get("/api/recording")
        assert answer.status_code == 503
        assert "as soon as there is one" in answer.json()["hint"]
