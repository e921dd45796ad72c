from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from tests.sources.systemd import journal_files

from nodescope.errors import MalformedSource, NodescopeError, SourceAbsent, SourceError
from nodescope.sources.systemd.happenings import CHOSEN, parse_message
from nodescope.sources.systemd.journal import Journal
from nodescope.sources.systemd.journal_file import Cursor, JournalFile

_RESTART = b"MESSAGE_ID=5eb03494b6584870a536b337290809b3"


@pytest.fixture(params=journal_files.FORMATS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return journal_files.write(tmp_path, request.param)


def _cursor(file: JournalFile, value: bytes) -> Cursor:
    field = file.find_field(value.partition(b"=")[0])
    assert field is not None
    return next(Cursor(at) for at, found in file.values_of(field) if found == value)


def test_entries_with_a_value_are_found(path: Path) -> None:
    with JournalFile(path) as file:
        assert file.header.entries == 86
        offsets = file.take_new(_cursor(file, _RESTART))
        entries = [file.read_entry(offset) for offset in offsets]
        assert [entry.seqnum for entry in entries] == sorted({e.seqnum for e in entries})
        counts = [
            int(raw.partition(b"=")[2])
            for entry in entries
            for raw in map(file.read_data, entry.items)
            if raw.startswith(b"N_RESTARTS=")
        ]
    # limit.service was restarted five times within a second, crashing.service goes on
    assert sorted(counts) == sorted([*range(1, 6), *range(1, len(counts) - 4)])


def test_entries_are_taken_in_portions_and_once(path: Path) -> None:
    with JournalFile(path) as file:
        whole = file.take_new(_cursor(file, _RESTART))
        cursor = _cursor(file, _RESTART)
        portions: list[int] = []
        while some := file.take_new(cursor, limit=2):
            assert len(some) <= 2
            portions += some
    assert portions == whole


def test_the_oldest_entries_can_be_passed_over(path: Path) -> None:
    with JournalFile(path) as file:
        whole = file.take_new(_cursor(file, _RESTART))
        for remaining in range(len(whole) + 2):
            cursor = _cursor(file, _RESTART)
            file.skip_to(cursor, remaining)
            assert file.take_new(cursor) == (whole[-remaining:] if remaining else [])


def test_a_compressed_field_is_read(path: Path) -> None:
    with JournalFile(path) as file:
        field = file.find_field(b"MESSAGE")
        assert field is not None
        longest = max((raw for _, raw in file.values_of(field)), key=len)
    assert longest == b"MESSAGE=Agent says: " + b"abcdefghij " * 400


def test_a_field_that_no_entry_has_is_not_found(path: Path) -> None:
    with JournalFile(path) as file:
        assert file.find_field(b"NO_SUCH_FIELD") is None


def test_what_is_no_journal_is_said_to_be_none(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"LPKSHHRG" + bytes(500))
    with pytest.raises(MalformedSource, match="not a journal file"):
        JournalFile(other)
    other.write_bytes(b"LPKSHHRH")
    with pytest.raises(MalformedSource, match="ends before"):
        JournalFile(other)
    with pytest.raises(SourceAbsent):
        JournalFile(tmp_path / "nowhere")


def test_a_later_format_is_refused_by_name(tmp_path: Path) -> None:
    data = bytearray(journal_files.content("compact"))
    struct.pack_into("<I", data, 12, 1 << 9)
    with pytest.raises(MalformedSource, match="later systemd"):
        JournalFile(journal_files.write(tmp_path, "compact", bytes(data)))


def _read_all(folder: Path) -> int:
    journal = Journal([folder], None, 1000)
    try:
        told = [parse_message(message) for message in journal.take_new(CHOSEN)]
        journal.read_lines("inside.service", 10)
        return len(told)
    finally:
        journal.close()


@pytest.mark.parametrize("name", journal_files.FORMATS)
def test_damaged_files_raise_nothing_but_our_errors(name: str, tmp_path: Path) -> None:
    random_ = random.Random(name)
    whole = journal_files.content(name)
    used = len(whole.rstrip(b"\0")) + 64
    path = journal_files.write(tmp_path, name)
    for _ in range(80):
        damaged = bytearray(whole[:used])
        for _ in range(random_.choice((1, 4, 40, 400))):
            at = random_.randrange(8, used - 8)
            kind = random_.randrange(3)
            if kind == 0:
                damaged[at] ^= 1 << random_.randrange(8)
            elif kind == 1:
                damaged[at : at + 8] = struct.pack("<Q", random_.randrange(used) & ~7)
            else:
                damaged[at : at + 8] = struct.pack("<Q", random_.getrandbits(64))
        path.write_bytes(damaged)
        try:
            assert _read_all(tmp_path) <= 10_000
        except SourceError:
            continue


@pytest.mark.parametrize("name", journal_files.FORMATS)
def test_files_cut_off_anywhere_raise_nothing_but_our_errors(name: str, tmp_path: Path) -> None:
    whole = journal_files.content(name)
    used = len(whole.rstrip(b"\0"))
    path = journal_files.write(tmp_path, name)
    for end in range(0, used, used // 60):
        path.write_bytes(whole[:end])
        try:
            _read_all(tmp_path)
        except NodescopeError:
            continue


def test_a_list_that_runs_in_a_circle_ends(tmp_path: Path) -> None:
    data = bytearray(journal_files.content("regular"))
    path = journal_files.write(tmp_path, "regular")
    with JournalFile(path) as file:
        field = file.find_field(b"MESSAGE_ID")
        assert field is not None
        first, *_, last = [at for at, _ in file.values_of(field)]
    struct.pack_into("<Q", data, last + 32, first)
    path.write_bytes(data)
    with JournalFile(path) as file, pytest.raises(MalformedSource, match="circle"):
        list(file.values_of(field))


def test_a_file_that_grows_is_followed(tmp_path: Path) -> None:
    """The file as it was when half of the restarts were written: its counters say so."""
    data = bytearray(journal_files.content("compact"))
    path = journal_files.write(tmp_path, "compact")
    with JournalFile(path) as file:
        cursor = _cursor(file, _RESTART)
        whole = file.take_new(cursor)
        struct.pack_into("<Q", data, cursor.data + 56, len(whole) // 2)
    path.write_bytes(data)
    with JournalFile(path) as file:
        cursor = _cursor(file, _RESTART)
        before = file.take_new(cursor)
        assert file.take_new(cursor) == []
        with open(path, "r+b") as writing:
            writing.write(journal_files.content("compact"))
        assert before + file.take_new(cursor) == whole


def test_reading_is_not_slowed_by_other_entries(path: Path) -> None:
    """A look at a file without news reads a few numbers, whatever else it holds."""
    reads = 0
    with JournalFile(path) as file:
        cursor = _cursor(file, _RESTART)
        file.take_new(cursor)
        pread = file._pread

        def counted(offset: int, length: int) -> bytes:
            nonlocal reads
            reads += 1
            return pread(offset, length)

        file._pread = counted  # type: ignore[method-assign]
        file.read_header()
        assert file.take_new(cursor) == []
    assert reads <= 4
