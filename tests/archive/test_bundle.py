"""Bundles: what goes in comes out, at the edges too; hostile ones are refused by name."""

from __future__ import annotations

import json
import os
import struct
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nodescope.archive.bundle_writer import write_bundle
from nodescope.archive.reader import Archive
from nodescope.archive.status import summarise
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat, UsageError
from nodescope.quantities import SECOND_NS

if TYPE_CHECKING:
    from tests.archive.conftest import Studio, Toolbox

WALL = 1_700_000_000 * SECOND_NS


@pytest.fixture
def recorded(studio: Studio, tools: type[Toolbox]) -> Studio:
    """Two sealed segments and one being written: a sample every 10 ms, all tables in use."""
    tape = studio.open()
    for number in range(3):
        tape.append(tools.make_samples(number * 1000, 1000))
        for second in range(11):
            at = studio.clock.monotonic + second * SECOND_NS
            tape.writer.append(
                "cores",
                {"cpu": [0, 1], "time_ns": [at, at]}
                | {
                    name: [100 * second + number, 7]
                    for name in (
                        "user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal",
                        "guest", "guest_nice",
                    )
                },
            )  # fmt: skip
        tape.beat(studio.clock, lost=number)
        tape.writer.append(
            "events",
            dict(time_ns=[studio.clock.monotonic + 5 * SECOND_NS], kind=["k"],
                 subject=[f"s{number}"], message=["ü"]),
        )  # fmt: skip
        tape.writer.append(
            "gaps",
            dict(from_ns=[studio.clock.monotonic], to_ns=[studio.clock.monotonic + 1], source=["x"],
                 cpu=[None], lost=[None], reason=["why"]),
        )  # fmt: skip
        studio.clock.advance(10 * SECOND_NS)
        if number < 2:
            tape.seal()
        else:
            tape.writer.flush()
    return studio


def bundle(studio: Studio, target: Path, start: float, end: float) -> Any:
    span = (int(WALL + start * SECOND_NS), int(WALL + end * SECOND_NS))
    return write_bundle(Archive.open(studio.root), target, *span, created_ns=1)


def test_a_whole_recording_comes_back_as_it_was(
    recorded: Studio, tools: type[Toolbox], tmp_path: Path
) -> None:
    target = tmp_path / "incident.nodescope"
    report = bundle(recorded, target, -10, 1000)
    assert (report.segments, report.cut, report.samples) == (3, 0, 3000)
    assert report.bytes == target.stat().st_size
    assert target.stat().st_mode & 0o777 == 0o600
    before, after = Archive.open(recorded.root), Archive.open(target)
    assert after.info == replace(before.info, retention_bytes=None)  # of a bundle nothing expires
    for one, other in zip(before.segments(), after.segments(), strict=True):
        assert other.name == one.name
        assert tools.read_samples(other) == tools.read_samples(one)
        assert other.description.clock == one.description.clock
        for table in ("seconds", "cores", "heartbeats", "gaps", "events", "profile"):
            assert other.read(table).to_pylist() == one.read(table).to_pylist()
    told, expected = summarise(after), summarise(before)
    assert told.samples == expected.samples == 3000
    assert (told.from_ns, told.to_ns, told.gaps) == (
        expected.from_ns,
        expected.to_ns,
        expected.gaps,
    )
    assert told.recording is None


def test_the_same_range_twice_is_the_same_bytes(recorded: Studio, tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    for target in files:
        bundle(recorded, target, 3, 25)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(("start", "end"), [(3, 7), (3, 15), (12.5, 28), (5, 5.01)])
def test_segments_at_the_edges_are_cut(
    recorded: Studio, tools: type[Toolbox], tmp_path: Path, start: float, end: float
) -> None:
    target = tmp_path / "cut"
    report = bundle(recorded, target, start, end)
    span = WALL + start * SECOND_NS, WALL + end * SECOND_NS
    expected: Counter[Any] = Counter()
    for segment in Archive.open(recorded.root).segments():
        for sample, count in tools.read_samples(segment).items():
            if span[0] <= segment.wall_ns(sample.tick * segment.tick_ns) < span[1]:
                expected[sample] += count
    found: Counter[Any] = Counter()
    events = 0
    for segment in Archive.open(target).segments():
        found += tools.read_samples(segment)
        events += len(segment.read("events"))
        seconds = segment.read("seconds").to_pylist()
        assert sum(row["user"] + row["kernel"] for row in seconds) == len(segment.read("samples"))
        used = set(segment.read("stacks").column("frame").to_pylist())
        assert used == set(range(len(segment.read("frames"))))
    assert found == expected
    assert report.samples == expected.total() > 0
    assert events == sum(start <= at < end for at in (5, 15, 25))


def test_core_readings_next_to_the_range_stay(recorded: Studio, tmp_path: Path) -> None:
    bundle(recorded, tmp_path / "cut", 3.5, 6.5)
    (segment,) = Archive.open(tmp_path / "cut").segments()
    times = sorted({row["time_ns"] // SECOND_NS for row in segment.read("cores").to_pylist()})
    assert times == [1003, 1004, 1005, 1006, 1007]


def test_a_clock_that_stepped_stays_where_it_was(
    studio: Studio, tools: type[Toolbox], tmp_path: Path
) -> None:
    tape = studio.open()
    tape.append(tools.make_samples(0, 1000))
    tape.beat(studio.clock)
    studio.clock.advance(2 * SECOND_NS)
    studio.clock.wall += 3600 * SECOND_NS
    tape.beat(studio.clock)
    tape.seal()
    tape.writer.close()
    step = 3602
    write_bundle(
        Archive.open(studio.root),
        tmp_path / "b",
        WALL + (step + 3) * SECOND_NS,
        WALL + (step + 4) * SECOND_NS,
        created_ns=1,
    )
    (segment,) = Archive.open(tmp_path / "b").segments()
    assert len(segment.read("samples")) == 100
    times = segment.wall_ns(segment.read("samples").column("tick").to_numpy() * segment.tick_ns)
    assert times.min() >= WALL + (step + 3) * SECOND_NS
    assert times.max() < WALL + (step + 4) * SECOND_NS


def test_a_bundle_of_a_bundle(recorded: Studio, tools: type[Toolbox], tmp_path: Path) -> None:
    bundle(recorded, tmp_path / "a", 2, 28)
    span = WALL + 4 * SECOND_NS, WALL + 15 * SECOND_NS
    write_bundle(Archive.open(tmp_path / "a"), tmp_path / "b", *span, created_ns=1)
    bundle(recorded, tmp_path / "c", 4, 15)
    read = tools.read_samples
    for one, other in zip(
        Archive.open(tmp_path / "b").segments(), Archive.open(tmp_path / "c").segments(),
        strict=True,
    ):  # fmt: skip
        assert read(one) == read(other)


def test_nothing_recorded_is_said_and_leaves_no_file(recorded: Studio, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing was recorded"):
        bundle(recorded, tmp_path / "none", 5000, 6000)
    assert not list(tmp_path.glob("*none*"))


# -- hostile ones --------------------------------------------------------------


def rewrite(source: Path, change: Callable[[dict[str, bytes]], None], **how: Any) -> Path:
    """A bundle with its members changed, the index left as it was unless changed too."""
    with zipfile.ZipFile(source) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    target = source.with_name("hostile")
    with zipfile.ZipFile(target, "w", **how) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return target


def index(files: dict[str, bytes], **changes: Any) -> None:
    content = json.loads(files["bundle.json"]) | changes
    files["bundle.json"] = json.dumps(content).encode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update({"../../etc/passwd": b"x"}), "none of a bundle's"),
        (lambda m: m.update({"/etc/passwd": b"x"}), "none of a bundle's"),
        (lambda m: m.update({"segments/../archive.json": b"x"}), "none of a bundle's"),
        (lambda m: m.update({"segments/00000001-20240101T000000Z/evil.so": b""}), "none of"),
        (lambda m: m.pop("bundle.json"), r"no bundle\.json"),
        (lambda m: m.pop("archive.json"), "disagree about 'archive.json'"),
        (lambda m: index(m, members={}), "disagree about"),
        (lambda m: index(m, members=7), "does not list"),
        (lambda m: index(m, format=0), "format is 0"),
        (lambda m: index(m, to="x"), "which time"),
        (lambda m: m.update({"bundle.json": b"[" * 100_000}), "not JSON"),
    ],
)
def test_a_hostile_bundle_is_refused_by_name(
    recorded: Studio, tmp_path: Path, change: Any, said: str
) -> None:
    bundle(recorded, tmp_path / "good", 0, 30)
    target = rewrite(tmp_path / "good", change)
    with pytest.raises(ArchiveError, match=said) as caught:
        Archive.open(target)
    assert str(target) in str(caught.value)


def test_a_compressed_member_is_refused(recorded: Studio, tmp_path: Path) -> None:
    bundle(recorded, tmp_path / "good", 0, 30)
    target = rewrite(tmp_path / "good", lambda m: None, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ArchiveError, match="compressed"):
        Archive.open(target)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(recorded: Studio, tmp_path: Path) -> None:
    bundle(recorded, tmp_path / "good", 0, 30)
    with zipfile.ZipFile(tmp_path / "good", "a") as file:
        file.writestr("archive.json", b"{}")
    with pytest.raises(ArchiveError, match="there twice"):
        Archive.open(tmp_path / "good")


def test_members_that_share_bytes_are_refused(recorded: Studio, tmp_path: Path) -> None:
    """A zip of a few kilobytes can claim terabytes, every member over the same bytes."""
    bundle(recorded, tmp_path / "good", 0, 30)
    data = bytearray((tmp_path / "good").read_bytes())
    at = data.rindex(b"PK\x01\x02")
    struct.pack_into("<II", data, at + 20, len(data) * 2, len(data) * 2)
    (tmp_path / "bomb").write_bytes(data)
    with pytest.raises(ArchiveError, match="beyond the end"):
        Archive.open(tmp_path / "bomb")


def test_a_newer_bundle_is_refused_by_its_number(recorded: Studio, tmp_path: Path) -> None:
    bundle(recorded, tmp_path / "good", 0, 30)
    target = rewrite(tmp_path / "good", lambda m: index(m, bundle=2))
    with pytest.raises(NewerFormat, match="format 2"):
        Archive.open(target)


@pytest.mark.parametrize("content", [b"", b"PK", b"\x7fELF" * 100, b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_no_bundle(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ArchiveError, match="file"):
        Archive.open(tmp_path / "file")


def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ArchiveError, match="regular file"):
        Archive.open(tmp_path / "fifo")


def test_every_truncation_is_a_clear_error(recorded: Studio, tmp_path: Path) -> None:
    bundle(recorded, tmp_path / "good", 0, 30)
    whole = (tmp_path / "good").read_bytes()
    for length in range(0, len(whole), 997):
        (tmp_path / "short").write_bytes(whole[:length])
        with pytest.raises(ArchiveError):
            Archive.open(tmp_path / "short")


def test_a_changed_byte_costs_only_its_segment(recorded: Studio, tmp_path: Path) -> None:
    bundle(recorded, tmp_path / "good", 0, 30)
    data = bytearray((tmp_path / "good").read_bytes())
    with zipfile.ZipFile(tmp_path / "good") as file:
        frames = next(info for info in file.infolist() if info.filename.endswith("frames.parquet"))
    data[frames.header_offset + 150] ^= 1
    (tmp_path / "bent").write_bytes(data)
    first, second, _ = Archive.open(tmp_path / "bent").segments()
    with pytest.raises(CorruptSegment, match="not those that were bundled"):
        first.read("frames")
    assert len(second.read("frames"))
