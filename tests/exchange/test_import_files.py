"""Files into an archive: once, whole or not at all, as one timeline."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from tests.exchange import perf_files as make
from tests.exchange.rows import read_rows, read_table

from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.cli.main import main
from nodescope.clock import SystemClock
from nodescope.errors import MalformedSource, NodescopeError, UsageError
from nodescope.exchange import import_files as importing
from nodescope.exchange import imported_files
from nodescope.exchange.import_files import import_files
from nodescope.exchange.import_formats import find_format
from nodescope.exchange.imported_files import read_imports
from nodescope.exchange.perf_data import importer as perf_data
from nodescope.quantities import SECOND_NS

CLOCK = make.Event()
WALL = 1_700_000_000 * SECOND_NS


def capture(
    start_ns: int, wall_ns: int, *, seconds: int = 10, node: str | None = "alpha", rate: int = 100
) -> bytes:
    data = CLOCK.comm(10, 0, "python3") + b"".join(
        CLOCK.sample(10, start_ns + i * SECOND_NS // rate, cpu=i % 2, user=[0x401000])
        for i in range(seconds * rate)
    )
    return make.File([CLOCK], data, hostname=node, clock=(start_ns, wall_ns)).content()


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_the_same_file_twice_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(capture(SECOND_NS, WALL))
    archive = tmp_path / "archive"
    (first,) = import_files([path], archive).reports
    before = files_of(archive)
    copy = tmp_path / "other-name.data"
    copy.write_bytes(path.read_bytes())
    (again,) = import_files([copy], archive).reports
    assert again.already_imported
    assert again.samples == first.samples == 1000
    changed = {name for name, content in files_of(archive).items() if before.get(name) != content}
    assert changed <= {str(archive / "lock")}
    assert [report.path for report in read_imports(archive)] == [str(path)]


def test_segments_are_two_minutes_each(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(capture(SECOND_NS, WALL, seconds=600, rate=20))
    import_files([path], tmp_path / "archive")
    segments = Archive.open(tmp_path / "archive").segments()
    assert len(segments) == 5
    assert all(115 * SECOND_NS < s.wall_to_ns - s.wall_from_ns <= 122 * SECOND_NS for s in segments)
    assert segments[0].wall_from_ns == WALL
    assert segments[0].name.endswith("20231114T221320Z")
    assert sum(segment.description.samples for segment in segments) == 12_000


def test_a_capture_a_little_over_two_minutes_is_one_segment(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(capture(SECOND_NS, WALL, seconds=125, rate=20))
    import_files([path], tmp_path / "archive")
    assert len(Archive.open(tmp_path / "archive").segments()) == 1


def test_a_folder_is_one_timeline_with_its_gaps(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    # Their own clocks run the other way round, as after a reboot: the wall decides.
    (folder / "a-late.data").write_bytes(capture(5 * SECOND_NS, WALL + 100 * SECOND_NS))
    (folder / "b-early.data").write_bytes(capture(900 * SECOND_NS, WALL))
    (folder / "notes.txt").write_bytes(b"\0\1\2 nothing of ours")
    imported = import_files([folder], tmp_path / "archive")
    assert [Path(report.path).name for report in imported.reports] == [
        "b-early.data",
        "a-late.data",
    ]
    assert imported.skipped == [folder / "notes.txt"]
    assert imported.is_whole
    segments = Archive.open(tmp_path / "archive").segments()
    assert [s.wall_from_ns for s in segments] == [WALL, WALL + 100 * SECOND_NS]
    (gap,) = segments[1].description.gaps
    assert gap.to_ns == WALL + 100 * SECOND_NS
    assert gap.from_ns == WALL + 95 * SECOND_NS  # its own clock began no earlier
    assert imported.reports[1].gaps == 1


def test_captures_that_follow_each_other_have_no_gap(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "1.data").write_bytes(capture(900 * SECOND_NS, WALL))
    (folder / "2.data").write_bytes(capture(910 * SECOND_NS, WALL + 10 * SECOND_NS))
    import_files([folder], tmp_path / "archive")
    assert read_table(tmp_path / "archive", "gaps") == []


def test_a_later_import_knows_where_the_one_before_ended(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "1.data").write_bytes(capture(900 * SECOND_NS, WALL))
    import_files([folder], tmp_path / "archive")
    (folder / "2.data").write_bytes(capture(950 * SECOND_NS, WALL + 50 * SECOND_NS))
    import_files([folder], tmp_path / "archive")
    (gap,) = read_table(tmp_path / "archive", "gaps")
    assert gap["from_ns"] == 910 * SECOND_NS - SECOND_NS // 100
    assert len(read_rows(tmp_path / "archive")) == 2000


def test_an_archive_is_of_one_node(tmp_path: Path) -> None:
    one, other = tmp_path / "one.data", tmp_path / "other.data"
    one.write_bytes(capture(SECOND_NS, WALL, node="alpha"))
    other.write_bytes(capture(SECOND_NS, WALL, node="beta"))
    archive = tmp_path / "archive"
    with pytest.raises(UsageError, match=r"'beta'.*'alpha'"):
        import_files([one, other], archive)
    assert not archive.exists()
    import_files([one], archive)
    before = files_of(archive)
    with pytest.raises(UsageError, match=r"other\.data is of node 'beta', but archive"):
        import_files([other], archive)
    assert files_of(archive) == before
    assert Archive.open(archive).info.node["name"] == "alpha"
    assert Archive.open(archive).info.node["kernel"] == "6.1.0-test"


def test_an_archive_recorded_here_keeps_its_node(tmp_path: Path) -> None:
    node = {"name": "alpha", "boot_id": "b", "kernel": "6.6"}
    archive = tmp_path / "archive"
    with ArchiveWriter.open(archive, node=node, clock=SystemClock(), tick_ns=1000) as writer:
        writer.append("events", {"time_ns": [1], "kind": ["a"], "subject": ["b"], "message": ["c"]})
    path = tmp_path / "perf.data"
    path.write_bytes(capture(SECOND_NS, WALL))
    import_files([path], archive)
    assert Archive.open(archive).info.node == node
    assert len(Archive.open(archive).segments()) == 2


def test_retention_leaves_old_captures_alone(tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / f"{number}.data"
        path.write_bytes(capture(SECOND_NS, WALL - number * 86_400 * SECOND_NS))
        import_files([path], tmp_path / "archive")
    assert len(Archive.open(tmp_path / "archive").segments()) == 3


class Killed(BaseException):
    """What no handler of ours may catch."""


@pytest.mark.parametrize("where", ["while importing", "while placing"])
def test_a_crash_leaves_no_half_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path, archive = tmp_path / "perf.data", tmp_path / "archive"
    path.write_bytes(capture(SECOND_NS, WALL, seconds=600, rate=20))
    renamed = 0
    if where == "while placing":
        rename = Path.rename

        def stop(self: Path, target: Path) -> Path:
            nonlocal renamed
            if (
                self.parent.parent.name == imported_files.STAGING_DIRECTORY
                and target.parent.parent == archive
            ):
                renamed += 1
                if renamed == 3:
                    raise Killed
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", stop)
        monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    else:
        monkeypatch.setattr(importing, "publish", lambda *_: (_ for _ in ()).throw(Killed))
    with pytest.raises(Killed):
        import_files([path], archive)
    monkeypatch.undo()
    assert read_imports(archive) == []
    (report,) = import_files([path], archive).reports
    assert not report.already_imported
    assert len(read_rows(archive)) == 12_000
    assert not (archive / imported_files.STAGING_DIRECTORY).exists()


def test_nonsense_times_do_not_make_a_segment_each(tmp_path: Path) -> None:
    data = b"".join(CLOCK.sample(10, (1 + i * 7919 % 2000) * 600 * SECOND_NS) for i in range(2000))
    path = tmp_path / "perf.data"
    path.write_bytes(make.File([CLOCK], data).content())
    import_files([path], tmp_path / "archive")
    assert len(Archive.open(tmp_path / "archive").segments()) <= 3


def test_what_is_no_capture_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(MalformedSource, match=r"picture\.png"):
        import_files([path], tmp_path / "archive")
    assert main(["import", str(path), "--archive", str(tmp_path / "archive")]) == 2
    said = capsys.readouterr().err
    assert "picture.png" in said
    assert "hint: expected one of: perf.data" in said
    assert not (tmp_path / "archive").exists()


def test_a_bundle_needs_no_import_and_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "node.bundle"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(MalformedSource) as raised:
        find_format(path)
    assert raised.value.hint == f"a bundle is read as it is: `nodescope diagnose --archive {path}`"


def test_the_command_reports_and_exits_by_what_came_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, archive = tmp_path / "perf.data", str(tmp_path / "archive")
    content = capture(SECOND_NS, WALL)
    path.write_bytes(content)
    assert main(["import", str(path), "--archive", archive]) == 0
    said = capsys.readouterr().out
    assert "perf.data of alpha" in said
    assert "samples     1,000, 0 lost" in said
    assert main(["import", str(path), "--archive", archive]) == 0
    assert "already imported" in capsys.readouterr().out
    cut = tmp_path / "cut.data"
    cut.write_bytes(content[: len(content) // 2])
    named = ("--node", "alpha")  # of a file that was cut off, its end named the node
    assert main(["import", str(cut), "--archive", archive, "--json", *named]) == 1
    document = json.loads(capsys.readouterr().out)
    (report,) = document["imports"]
    assert report["stopped_at"] > 0
    assert 0 < report["samples"] < 1000
    assert report["from"] == "2023-11-14T22:13:20.000Z" or report["clock_source"]
    assert report["unresolved_user_ratio"] == 1.0


def test_one_bad_file_in_a_folder_does_not_cost_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "1.data").write_bytes(capture(900 * SECOND_NS, WALL))
    (folder / "2.data").write_bytes(make.File([CLOCK], b"").content())
    (folder / "3.data").write_bytes(capture(900 * SECOND_NS, WALL)[:60])
    imported = import_files([folder], tmp_path / "archive")
    assert [report.samples for report in imported.reports] == [1000]
    headless, empty = imported.failures
    assert headless.path.endswith("3.data")
    assert empty.path.endswith("2.data")
    assert "no samples" in empty.reason
    assert not imported.is_whole


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodescopeError, match="nowhere"):
        import_files([tmp_path / "nowhere"], tmp_path / "archive")


def test_fingerprints_of_large_files_tell_them_apart(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for path, last in ((one, b"a"), (other, b"b")):
        with open(path, "wb") as file:
            file.truncate(imported_files._WHOLE_BYTES + 12345)
            file.seek(0, os.SEEK_END)
            file.write(last)
    assert imported_files.fingerprint(one) != imported_files.fingerprint(other)
    assert imported_files.fingerprint(one) == imported_files.fingerprint(one)
    assert perf_data.FORMAT.name == "perf.data"


def test_idleness_that_was_not_captured_is_not_printed_as_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Issue 13, point 8: `0.0 % idle` where the capture left the idle task out."""
    path = tmp_path / "perf.data"
    path.write_bytes(capture(SECOND_NS, WALL))
    arguments = ["import", str(path), "--archive", str(tmp_path / "archive")]
    assert main(arguments) == 0
    assert "% idle" not in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["imports"][0]["idle_ratio"] is None


def test_a_file_that_names_no_node_is_not_put_into_a_nodes_recording_unasked(
    tmp_path: Path,
) -> None:
    """Issue 13, point 8: a log of an unnamed node, dated by its mtime, was merged silently."""
    archive, log = tmp_path / "archive", tmp_path / "dmesg.txt"
    log.write_text("[    1.000000] eth0: link up\n[    2.000000] eth0: link down\n")
    with ArchiveWriter.open(
        archive, node={"name": "gpu-7"}, clock=SystemClock(), tick_ns=1000
    ) as writer:
        writer.append("heartbeats", {"time_ns": [SystemClock().monotonic_ns()], "wall_ns": [1]})
    with pytest.raises(UsageError, match="does not say of which node it is") as refused:
        import_files([log], archive)
    assert "--node gpu-7" in str(refused.value.hint)
    with pytest.raises(UsageError, match="--node is of node 'gpu-8'"):
        import_files([log], archive, node_name="gpu-8")
    (report,) = import_files([log], archive, node_name="gpu-7").reports
    assert (report.node, report.rows["events"]) == ("gpu-7", 3)  # one says: times are estimated
    (again,) = import_files([log], archive).reports  # it is there already
    assert again.already_imported
    (alone,) = import_files([log], tmp_path / "own").reports
    assert alone.node is None
