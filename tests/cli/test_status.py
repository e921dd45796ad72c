from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodescope.archive.layout import create_archive
from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.cli.status import render_summary, summary_to_json
from nodescope.quantities import SECOND_NS, format_bytes

Nodescope = Callable[..., Any]
START_NS = 1_777_636_800_000_000_000  # 2026-05-01T12:00:00Z
NODE = {"name": "gpu-7", "cpus": 96, "kernel": "5.10.0", "memory_bytes": 1 << 40, "boot_id": "b1"}


class TestClock:
    """Starts at START_NS; moves when told."""

    __test__ = False

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return START_NS + self.now_ns


def _heartbeat(at_ns: int, cpu_ns: int, lost: int) -> dict[str, list[int]]:
    return {
        "time_ns": [at_ns],
        "wall_ns": [START_NS + at_ns],
        "cpu_ns": [cpu_ns],
        "rss_bytes": [50 << 20],
        "written_bytes": [0],
        "samples": [0],
        "lost": [lost],
        "late_ns": [3_000_000],
        "frequency_hz": [97],
    }


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Ten seconds of a node that lost five records on core 3."""
    clock = TestClock()
    root = tmp_path / "archive"
    with ArchiveWriter.open(root, node=NODE, clock=clock, tick_ns=100_000) as writer:
        writer.append("heartbeats", _heartbeat(0, 0, 0))
        clock.now_ns = 10 * SECOND_NS
        writer.append("heartbeats", _heartbeat(clock.now_ns, 50_000_000, 5))
        writer.append(
            "gaps",
            {
                "from_ns": [4 * SECOND_NS],
                "to_ns": [6 * SECOND_NS],
                "source": ["samples"],
                "cpu": [3],
                "lost": [5],
                "reason": ["the ring was full"],
            },
        )
        writer.flush()
    return root


def test_json_has_what_scripts_rely_on(archive: Path, nodescope: Nodescope) -> None:
    result = nodescope("status", "--archive", archive, "--json")
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    assert document["node"] == "gpu-7"
    assert document["from"] == "2026-05-01T12:00:00.000Z"
    assert document["to"] == "2026-05-01T12:00:10.000Z"
    assert document["from_ns"] == START_NS
    assert document["to_ns"] == START_NS + 10 * SECOND_NS
    assert document["samples"] == 0
    assert document["lost"] == 5
    assert document["bytes"] > 0
    assert document["bytes_per_sample"] is None
    assert document["segments"] == 1
    assert document["recorder"]["cpu_ratio"] == pytest.approx(0.005)
    assert document["recorder"]["rss_bytes"] == 50 << 20
    assert document["recording"] is None
    assert document["gaps"] == [
        {
            "from_ns": START_NS + 4 * SECOND_NS,
            "to_ns": START_NS + 6 * SECOND_NS,
            "source": "samples",
            "cpu": 3,
            "lost": 5,
            "reason": "the ring was full",
            "from": "2026-05-01T12:00:04.000Z",
            "to": "2026-05-01T12:00:06.000Z",
        }
    ]


def test_text_names_node_cost_and_gap(archive: Path, nodescope: Nodescope) -> None:
    out = nodescope("status", "--archive", archive).out
    assert "node       gpu-7 (96 cores, 1 TiB memory, Linux 5.10.0)" in out
    assert "recording  no" in out
    assert "(10 s)" in out
    assert "0.50 % of one core, 50 MiB resident, 97 Hz, late by 3 ms at worst" in out
    assert "1 gap (what was not recorded, and why):" in out
    assert "2 s       samples on core 3: the ring was full, 5 records" in out


def test_it_is_said_who_records_now(archive: Path, nodescope: Nodescope) -> None:
    clock = TestClock()
    clock.now_ns = 60 * SECOND_NS
    with ArchiveWriter.open(archive, node=NODE, clock=clock, tick_ns=100_000) as writer:
        result = nodescope("status", "--archive", archive, "--json")
        recording = json.loads(result.out)["recording"]
        assert recording["pid"] > 0
        text = nodescope("status", "--archive", archive).out
        assert f"recording  yes, pid {recording['pid']} on {recording['host']}" in text
        writer.append("heartbeats", _heartbeat(clock.now_ns, 0, 0))


def test_a_pause_between_two_recorders_is_a_gap(archive: Path, nodescope: Nodescope) -> None:
    clock = TestClock()
    clock.now_ns = 60 * SECOND_NS
    with ArchiveWriter.open(archive, node=NODE, clock=clock, tick_ns=100_000) as writer:
        writer.append("heartbeats", _heartbeat(clock.now_ns, 0, 0))
    document = json.loads(nodescope("status", "--archive", archive, "--json").out)
    assert [gap["reason"] for gap in document["gaps"]] == [
        "the ring was full",
        "no recorder was running",
    ]


def test_a_damaged_segment_is_a_finding(archive: Path, nodescope: Nodescope) -> None:
    (segment,) = (archive / "segments").iterdir()
    (segment / "heartbeats.parquet").write_bytes(b"short")
    result = nodescope("status", "--archive", archive, "--json")
    assert result.code == 1
    (damaged,) = json.loads(result.out)["damaged"]
    assert "heartbeats.parquet" in damaged
    assert "damaged" in nodescope("status", "--archive", archive).out


def test_no_archive_is_an_error_by_name(tmp_path: Path, nodescope: Nodescope) -> None:
    result = nodescope("status", "--archive", tmp_path / "nowhere")
    assert result.code == 2
    assert f"nodescope: error: {tmp_path}/nowhere: no such archive" in result.err
    assert "hint: " in result.err


def test_the_environment_names_the_archive(
    archive: Path, nodescope: Nodescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODESCOPE_ARCHIVE", str(archive))
    assert nodescope("status").code == 0


def test_only_the_latest_gaps_are_listed(archive: Path) -> None:
    from dataclasses import replace

    from nodescope.archive.reader import Archive
    from nodescope.archive.status import summarise

    summary = summarise(Archive.open(archive))
    many = replace(summary, gaps=summary.gaps * 12)
    assert "… 2 earlier ones: --json shows all" in render_summary(archive, many, START_NS)
    shown = summary_to_json(archive, many)["gaps"]
    assert isinstance(shown, list)
    assert len(shown) == 12


def test_freeze_list_and_remove(archive: Path, nodescope: Nodescope) -> None:
    arguments = ["--from", "2026-05-01T12:00:00Z", "--to", "2026-05-01T12:00:05Z"]
    frozen = nodescope("freeze", "--archive", archive, *arguments, "--reason", "NIC reset")
    assert (frozen.code, frozen.err) == (0, "")
    (listed,) = json.loads(nodescope("freeze", "--archive", archive, "--list", "--json").out)[
        "frozen"
    ]
    assert listed["from_ns"] == START_NS
    assert listed["to_ns"] == START_NS + 5 * SECOND_NS
    assert listed["reason"] == "NIC reset"
    assert "NIC reset" in nodescope("status", "--archive", archive).out
    assert nodescope("freeze", "--archive", archive, "--remove", listed["id"]).code == 0
    assert nodescope("freeze", "--archive", archive, "--list").out == "nothing is frozen\n"


def test_frozen_data_over_the_limit_is_said_loudly(archive: Path, nodescope: Nodescope) -> None:
    nodescope("freeze", "--archive", archive, "--from", "2026-05-01T12:00:00Z")
    document = json.loads(nodescope("status", "--archive", archive, "--json").out)
    assert document["retention_bytes"] == 4 << 30
    assert 0 < document["frozen_bytes"] < document["bytes"]
    size = format_bytes(document["frozen_bytes"])
    assert f"kept beyond retention: {size}\n" in nodescope("status", "--archive", archive).out
    clock = TestClock()
    clock.now_ns = 20 * SECOND_NS
    with ArchiveWriter.open(
        archive, node=NODE, clock=clock, tick_ns=100_000, retention=Retention(size_bytes=500)
    ):
        pass
    shown = nodescope("status", "--archive", archive).out
    assert f"kept beyond retention: {size}, OVER the 500 B of --retention-size" in shown


def test_freeze_last_is_the_end_of_the_recording(archive: Path, nodescope: Nodescope) -> None:
    """Issue 13, point 7: it meant the time up to now, and froze an empty range silently."""
    result = nodescope("freeze", "--archive", archive, "--last", "5s", "--json")
    (frozen,) = json.loads(result.out)["frozen"]
    assert (frozen["from_ns"], frozen["to_ns"]) == (
        START_NS + 5 * SECOND_NS + 1,
        START_NS + 10 * SECOND_NS + 1,
    )
    future = nodescope("freeze", "--archive", archive, "--from", "now", "--to", "2260-01-01")
    assert future.code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "2020-01-01", "--to", "2020-01-02"], "nothing was recorded from 2020-01-01T"),
        (["--remove", "9999"], "9999"),
        (["--last", "5m", "--to", "now"], "--to needs --from"),
        (["--from", "now", "--to", "5m ago"], "ends before it starts"),
        (["--from", "tomorrow"], "not a time"),
        ([], "required"),
    ],
)
def test_freeze_refuses(
    arguments: list[str], message: str, archive: Path, nodescope: Nodescope
) -> None:
    result = nodescope("freeze", "--archive", archive, *arguments)
    assert result.code == 2
    assert message in result.err
    assert "\nhint: " in result.err


def test_what_nobody_recorded_of_an_import_is_not_shown_as_a_value(
    tmp_path: Path, nodescope: Nodescope
) -> None:
    log = tmp_path / "dmesg.txt"
    log.write_text("[  100.0] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [dd:812]\n")
    archive = tmp_path / "archive"
    assert nodescope("import", log, "--archive", archive).code == 0
    out = nodescope("status", "--archive", archive).out
    assert "None" not in out
    assert "node       not known\n" in out
    assert "cost       not known: imported\n" in out
    recorder = json.loads(nodescope("status", "--archive", archive, "--json").out)["recorder"]
    assert set(recorder.values()) == {None}
    assert "late" not in nodescope("quality", "--archive", archive).out


def test_zeros_of_an_older_import_are_not_known(tmp_path: Path, nodescope: Nodescope) -> None:
    clock = TestClock()
    with ArchiveWriter.open(tmp_path / "old", node={}, clock=clock, tick_ns=1000) as writer:
        writer.append("heartbeats", {**_heartbeat(0, 0, 0), "rss_bytes": [0], "frequency_hz": [0]})
    recorder = json.loads(nodescope("status", "--archive", tmp_path / "old", "--json").out)
    assert set(recorder["recorder"].values()) == {None}


def test_a_bundle_with_a_changed_byte_is_damaged(
    archive: Path, tmp_path: Path, nodescope: Nodescope
) -> None:
    bundle = tmp_path / "a.nodescope"
    assert nodescope("export", "bundle", "--archive", archive, "--output", bundle).code == 0
    assert nodescope("status", "--archive", bundle).code == 0
    content = bytearray(bundle.read_bytes())
    content[content.index(b"PAR1") + 10] ^= 0xFF
    bundle.write_bytes(content)
    result = nodescope("status", "--archive", bundle)
    assert result.code == 1
    assert "not those that were bundled" in result.out


def test_one_damaged_table_costs_the_other_tables_nothing(
    archive: Path, nodescope: Nodescope
) -> None:
    for path in archive.glob("segments/*/heartbeats.parquet"):
        path.unlink()
    out = nodescope("status", "--archive", archive).out
    assert "(10 s)" in out
    assert "heartbeats: heartbeats.parquet is damaged: missing" in out
    events = nodescope("events", "--archive", archive)
    assert events.code == 0
    assert "left out: " in events.err


def test_what_cannot_be_read_is_not_said_to_be_empty(archive: Path, nodescope: Nodescope) -> None:
    for path in archive.glob("segments/*/*.parquet"):
        path.unlink()
    out = nodescope("status", "--archive", archive).out
    assert "range      not known: nothing that was recorded can be read" in out
    assert "no gaps" not in out
    for command in ("cores", "top", "events", "diagnose"):
        result = nodescope(command, "--archive", archive)
        assert result.code == 2
        assert "what is recorded in it cannot be read" in result.err
    bundled = nodescope("export", "bundle", "--archive", archive, "--output", archive / "b")
    assert "cannot be read" in bundled.err


def test_a_full_disk_is_named(
    tmp_path: Path, nodescope: Nodescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_archive(tmp_path / "archive", 0, {})
    assert "range      nothing is recorded yet" in nodescope("status", "--archive",
                                                             tmp_path / "archive").out  # fmt: skip
    monkeypatch.setattr("nodescope.archive.status._free_bytes", lambda archive: 4096)
    out = nodescope("status", "--archive", tmp_path / "archive").out
    assert "range      nothing is recorded: the device has only 4 KiB free" in out
    assert "imported" not in out
    assert "no gaps" not in out
