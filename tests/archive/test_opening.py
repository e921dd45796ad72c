"""Who may open what: formats, locks, folders that are no archive, damage at rest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import nodescope
from nodescope.archive.layout import FORMAT
from nodescope.archive.lock import find_holder
from nodescope.archive.reader import Archive
from nodescope.archive.writer import ArchiveWriter
from nodescope.errors import ArchiveBusy, ArchiveError, CorruptSegment, NewerFormat
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records import SAMPLE_TABLES

if TYPE_CHECKING:
    from tests.archive.conftest import Studio, Toolbox

HOLD = """
import sys
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
writer = ArchiveWriter.open(sys.argv[1], node={}, clock=SystemClock(), tick_ns=1000)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def sealed(studio: Studio, tools: type[Toolbox]) -> Studio:
    """An archive of two sealed segments."""
    tape = studio.open()
    for first in (0, 100):
        tape.append(tools.make_samples(first, 100))
        tape.beat(studio.clock)
        tape.seal()
    tape.writer.close()
    return studio


def _first(studio: Studio) -> Path:
    return sorted((studio.root / "segments").iterdir())[0]


def test_a_second_recorder_is_refused_by_name(tmp_path: Path, studio: Studio) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(nodescope.__file__).parents[1])}
    command = [sys.executable, "-c", HOLD, str(studio.root)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        host = os.uname().nodename
        with pytest.raises(ArchiveBusy, match=f"pid {child.pid} on {host}"):
            studio.open()
        holder = find_holder(studio.root)
        assert holder is not None
        assert (holder.pid, holder.host) == (child.pid, host)
        child.kill()
    assert find_holder(studio.root) is None
    studio.open().writer.close()


def test_the_same_process_cannot_open_twice_either(studio: Studio) -> None:
    tape = studio.open()
    with pytest.raises(ArchiveBusy, match=f"pid {os.getpid()}"):
        studio.open()
    tape.writer.close()
    tape.writer.close()


def test_a_newer_archive_is_refused_by_both_versions(sealed: Studio) -> None:
    path = sealed.root / "archive.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": FORMAT + 1}))
    for refused in (lambda: Archive.open(sealed.root), sealed.open):
        with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}.*up to {FORMAT}") as caught:
            refused()
        assert caught.value.hint
    assert find_holder(sealed.root) is None


def test_a_newer_segment_costs_only_itself(sealed: Studio) -> None:
    path = _first(sealed) / "segment.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": FORMAT + 1}))
    listing = Archive.open(sealed.root).listing()
    assert [segment.name for segment in listing.segments] != [_first(sealed).name]
    assert [type(error) for error in listing.damaged] == [NewerFormat]


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda root: None, "no such archive"),
        (lambda root: root.write_text("x"), "neither a folder nor a whole bundle"),
        (lambda root: root.mkdir(), "not an archive"),
        (lambda root: (root.mkdir(), (root / "archive.json").write_text("[]")), "not a JSON obj"),
        (lambda root: (root.mkdir(), (root / "archive.json").write_text("{")), "not JSON"),
        (lambda root: (root.mkdir(), (root / "archive.json").write_text("{}")), "format is None"),
        (
            lambda root: (root.mkdir(), (root / "archive.json").write_text("[" * 100_000)),
            "not JSON",
        ),
        (
            lambda root: (root.mkdir(), (root / "archive.json").write_text(" " * (2 << 20))),
            "larger than",
        ),
    ],
)
def test_what_is_no_archive_is_named(tmp_path: Path, prepare: Any, said: str) -> None:
    root = tmp_path / "thing"
    prepare(root)
    with pytest.raises(ArchiveError, match=said) as caught:
        Archive.open(root)
    assert str(root) in str(caught.value)


def test_a_folder_with_other_things_is_not_made_an_archive(studio: Studio) -> None:
    studio.root.mkdir()
    (studio.root / "thesis.tex").write_text("do not touch")
    with pytest.raises(ArchiveError, match=r"holds 'thesis\.tex'"):
        studio.open()


def test_node_facts_follow_the_recorder(sealed: Studio) -> None:
    before = Archive.open(sealed.root).info
    sealed.node = {"host": "renamed"}
    sealed.open().writer.close()
    after = Archive.open(sealed.root).info
    assert after.node == {"host": "renamed"}
    assert after.created_ns == before.created_ns


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: [path.unlink() for path in d.glob("*.parquet")],
        lambda d: (d / "segment.json").unlink(),
        lambda d: (d / "segment.json").write_text('{"format": 1'),
        lambda d: ((d / "segment.json").unlink(), (d / "segment.json").symlink_to("/etc/passwd")),
    ],
)
def test_a_damaged_segment_costs_only_itself(
    sealed: Studio, tools: type[Toolbox], damage: Any
) -> None:
    damage(_first(sealed))
    listing = Archive.open(sealed.root).listing()
    (segment,) = listing.segments
    assert tools.read_samples(segment) == Counter(tools.make_samples(100, 100))
    assert listing.damaged
    for error in listing.damaged:
        assert isinstance(error, CorruptSegment)
        assert str(_first(sealed)) in error.path
    sealed.open().writer.close()  # nor does it stop a recorder
    assert _first(sealed).is_dir()


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: (d / "samples.parquet").unlink(),
        lambda d: os.truncate(d / "samples.parquet", 100),
        lambda d: ((d / "frames.parquet").unlink(), (d / "frames.parquet").symlink_to("/dev/zero")),
    ],
)
def test_a_damaged_table_costs_its_samples_and_not_the_segment(sealed: Studio, damage: Any) -> None:
    before = Archive.open(sealed.root).segments()[0].description
    damage(_first(sealed))
    archive = Archive.open(sealed.root)
    listing = archive.listing()
    segment, _ = listing.segments
    assert "heartbeats" in segment.description.tables
    assert not segment.description.tables.keys() & set(SAMPLE_TABLES)
    assert len(segment.read("heartbeats")) == before.tables["heartbeats"].rows
    (error,) = listing.damaged
    assert isinstance(error, CorruptSegment)
    (gap,) = segment.description.gaps
    assert (gap.source, gap.cpu, gap.lost) == ("samples", None, None)
    assert (gap.from_ns, gap.to_ns) == (segment.wall_from_ns, segment.wall_to_ns + 1)
    assert "damaged" in gap.reason
    known = {each.name: each for each in listing.segments}
    assert archive.listing(known).damaged == [error]  # as long as it is


def test_an_archive_of_which_nothing_can_be_read_says_so(sealed: Studio) -> None:
    for path in sealed.root.glob("segments/*/*.parquet"):
        path.unlink()
    listing = Archive.open(sealed.root).listing()
    assert listing.segments == []
    assert "cannot be read" in listing.emptiness
    assert "parquet: missing" in listing.emptiness


def test_an_open_segment_into_which_nothing_was_written_is_none(sealed: Studio) -> None:
    opened = sealed.root / "open" / "00000009-20231114T221320Z"
    opened.mkdir(parents=True)
    (opened / "segment.json").write_text("{}")
    (opened / "events.arrows").write_bytes(b"")
    listing = Archive.open(sealed.root).listing()
    assert [each.name for each in listing.segments] == sorted(
        path.name for path in sealed.root.glob("segments/*")
    )
    assert listing.damaged == []


def test_a_truncated_table_names_the_byte(sealed: Studio) -> None:
    os.truncate(_first(sealed) / "stacks.parquet", 40)
    (error,) = Archive.open(sealed.root).listing().damaged
    assert isinstance(error, CorruptSegment)
    assert error.path.endswith("stacks.parquet")
    assert error.offset == 40
    assert "at byte 40" in str(error)


def test_a_table_damaged_inside_is_found_when_read(sealed: Studio) -> None:
    path = _first(sealed) / "frames.parquet"
    path.write_bytes(b"\xee" * path.stat().st_size)
    segment = Archive.open(sealed.root).segments()[0]
    with pytest.raises(CorruptSegment, match=r"frames\.parquet"):
        segment.read("frames")
    assert len(segment.read("samples")) == 100


def _replace(content: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        content = content[name]
    content[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("start", []),
        ("start.tick_ns", 0),
        ("start.tick_ns", True),
        ("start.name", "../../etc"),
        ("start.boot_id", None),
        ("start.first_of_run", 1),
        ("from_ns", "1"),
        ("to_ns", 2**70),
        ("wall_to_ns", 1.5),
        ("clock", []),
        ("clock", [[1]]),
        ("clock", [["a", 1]]),
        ("tables", {"samples": [-1, 5]}),
        ("tables", {"../../etc/passwd": [1, 1]}),
        ("tables", {"samples": "many"}),
        ("cost", {}),
        ("cost", 7),
        ("gaps", {}),
        ("gaps", [1]),
        ("gaps", [{"from_ns": 1, "to_ns": 2, "source": 3, "reason": "x"}]),
    ],
)
def test_a_hostile_description_is_refused_by_path(sealed: Studio, path: str, value: Any) -> None:
    file = _first(sealed) / "segment.json"
    content = json.loads(file.read_text())
    _replace(content, path, value)
    file.write_text(json.dumps(content))
    listing = Archive.open(sealed.root).listing()
    assert len(listing.segments) == 1
    (error,) = listing.damaged
    assert error.path == str(file)


def test_an_archive_works_with_the_clock_of_the_machine(tmp_path: Path) -> None:
    from nodescope.clock import SystemClock

    with ArchiveWriter.open(tmp_path, node={}, clock=SystemClock(), tick_ns=1000) as writer:
        writer.append("events", dict(time_ns=[1], kind=["k"], subject=["s"], message=["m"]))
    assert len(Archive.open(tmp_path).segments()) == 1


@pytest.mark.parametrize(
    ("table", "referred", "column"),
    [("samples", "profile", "profile"), ("profile", "stacks", "profile_stack"),
     ("stacks", "frames", "frame")],
)  # fmt: skip
def test_rows_that_are_not_there_are_named_not_met_by_surprise(
    sealed: Studio, table: str, referred: str, column: str
) -> None:
    first = _first(sealed)
    path = first / f"{referred}.parquet"
    pq.write_table(pq.read_table(path).slice(0, 1), path)
    description = json.loads((first / "segment.json").read_text())
    description["tables"][referred] = [1, path.stat().st_size]
    (first / "segment.json").write_text(json.dumps(description))
    segment = next(each for each in Archive.open(sealed.root).segments() if each.name == first.name)
    with pytest.raises(CorruptSegment, match=f"{table}.parquet.*{referred} does not have"):
        getattr(SampleColumns(segment), column)
