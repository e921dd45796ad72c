"""What could not be seen is named in every form, and silence about it is no all-clear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.diagnosis.told import at, event, lines, record, solve_told

from nodescope.cli.main import main
from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.report.document import diagnosis_document
from nodescope.diagnosis.report.text import render_markdown
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.node_tables import SourceCostRow
from nodescope.records.recorder_tables import Gap

LOG = """\
Nov 17 10:00:00 node1 kernel: [  100.0] Linux version 6.1.0
Nov 17 10:02:05 node1 kernel: [  225.0] blk_update_request: I/O error, dev sdb, sector 1234
Nov 17 10:05:05 node1 kernel: [  405.0] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.
"""


@pytest.fixture
def imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    log, archive = tmp_path / "messages", tmp_path / "archive"
    log.write_text(LOG)
    assert main(["import", str(log), "--archive", str(archive)]) == 0
    capsys.readouterr()
    return archive


def cut(archive: Path, table: str) -> Path:
    (file,) = archive.glob(f"segments/*/{table}.parquet")
    file.write_bytes(file.read_bytes()[:200])
    return file


def test_damaged_events_are_no_all_clear(
    imported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = ["--archive", str(imported)]
    assert main(["diagnose", *archive]) == 1
    file = cut(imported, "events")
    capsys.readouterr()
    assert main(["diagnose", *archive]) == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert "events (damaged): what was recorded 2026-11-17T10:00:00.000Z to" in shown
    assert f"{file} (" in shown
    assert "kernel log" not in shown
    assert main(["diagnose", "--json", *archive]) == 2
    missing = json.loads(capsys.readouterr().out)["missing"]
    assert missing[0]["what"] == "events (damaged)"
    assert missing[0]["view"]["what"] == "status"
    for name in ("report.html", "report.md"):
        assert main(["diagnose", "--output", str(tmp_path / name), *archive]) == 2
        assert "events (damaged)" in (tmp_path / name).read_text().replace("\\", "")


def test_a_bundle_of_a_damaged_recording_tells_of_the_damage(imported: Path) -> None:
    cut(imported, "events")
    bundle = imported.parent / "a.bundle"
    assert main(["export", "bundle", "--archive", str(imported), "--output", str(bundle)]) in (0, 1)
    assert main(["diagnose", "--archive", str(bundle)]) == 2


def test_events_that_cannot_be_read_are_not_none(
    imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = cut(imported, "events")
    assert main(["events", "--serious", "--archive", str(imported)]) == 1
    assert f"cannot be read: {file}" in capsys.readouterr().out
    assert main(["events", "--json", "--archive", str(imported)]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == [] or "events" in json.loads(said.out)
    assert f"cannot be read: {file}" in said.err


def test_a_segment_of_which_nothing_is_left_is_named(imported: Path, tmp_path: Path) -> None:
    later = tmp_path / "later"
    later.write_text(LOG.replace("Nov 17", "Nov 16"))
    assert main(["import", str(later), "--archive", str(imported)]) == 0
    (imported / "segments").joinpath(
        sorted(each.name for each in (imported / "segments").iterdir())[0], "segment.json"
    ).write_text("{")
    recording = Recording.open(imported)
    found = diagnose(recording, Window(recording.extent.from_ns, recording.extent.to_ns))
    assert "1 segment (damaged)" in [each.what for each in found.missing]
    assert found.blind
    assert found.healthy is False
    assert "1 segment" in render_markdown(found)
    assert diagnosis_document(found)["missing"][0]["consequence"].startswith("nothing that was")


def test_an_import_is_not_sent_to_this_machines_doctor(
    imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Conditions that nobody looked at are named beside incidents, too."""
    assert main(["diagnose", "--archive", str(imported)]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "conditions: not recorded" in shown
    assert "record the node itself" in shown
    assert "doctor" not in shown


def test_an_import_without_samples_says_so(
    imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["top", "--archive", str(imported)])
    assert "imported from files without any" in " ".join(capsys.readouterr())


def test_lines_that_were_overwritten_make_counts_a_least() -> None:
    kill = "Out of memory: Killed process 901 (java) total-vm:1000kB, anon-rss:900kB"
    told = lines((100, kill), (110, kill))
    gap = Gap(
        from_ns=at(101), to_ns=at(109), source="kernel_log", lost=34463,
        reason="overwritten before it was read",
    )  # fmt: skip
    found = solve_told(told, [gap])
    (missing,) = [each for each in found.missing if each.what == "part of the kernel log"]
    assert "34,463 records were overwritten" in missing.consequence
    assert "at least 2 times" in render_markdown(found)
    assert "at least" not in render_markdown(solve_told(told))


def test_a_kernel_log_that_was_refused_a_moment_after_the_start_is_missing() -> None:
    """The observer is asked first when the recording runs already."""
    started = event(0, "recorder_started", "recorder")
    kept = Gap(from_ns=at(0.1), to_ns=at(901), source="kernel_log", reason="not permitted")
    asked = SourceCostRow(time_ns=at(900), source="kernel_log")
    recording = record([started], [kept, asked])
    window = Window(recording.extent.from_ns, recording.extent.to_ns)
    found = diagnose(recording, window)
    assert "kernel log" in [each.what for each in found.missing]
    assert found.blind
