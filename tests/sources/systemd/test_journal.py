from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.sources.systemd import journal_files

from nodescope.errors import SourceAbsent, SourceDenied
from nodescope.sources.places import Places
from nodescope.sources.systemd.happenings import CHOSEN
from nodescope.sources.systemd.journal import Journal, read_boot_id
from nodescope.sources.systemd.locations import bus_addresses, journal_folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    journal_files.write(tmp_path / "0123456789abcdef0123456789abcdef", "compact")
    return tmp_path


def test_messages_come_in_order_with_the_time_of_who_logged_them(folder: Path) -> None:
    journal = Journal([folder], None, 1000)
    messages = journal.take_new(CHOSEN)
    journal.close()
    times = [message.time_us for message in messages]
    assert len(messages) == journal_files.OURS
    assert sorted(message.wall_us for message in messages) == [m.wall_us for m in messages]
    for message in messages:
        assert message.wall_us == int(message.fields["_SOURCE_REALTIME_TIMESTAMP"])
    assert times[0] > 0


def test_what_was_taken_is_not_taken_again(folder: Path) -> None:
    journal = Journal([folder], None, 1000)
    assert journal.take_new(CHOSEN)
    assert journal.take_new(CHOSEN) == []
    journal.close()


def test_a_file_that_comes_later_is_read_whole(folder: Path) -> None:
    journal = Journal([folder], None, 0)
    assert journal.take_new(CHOSEN) == []  # no history was asked for
    whole = next(folder.iterdir())
    shutil.copy(whole / "system.journal", whole / "system@later.journal")
    assert len(journal.take_new(CHOSEN)) == journal_files.OURS
    journal.close()


def test_history_is_bounded_over_all_files(folder: Path) -> None:
    only = next(folder.iterdir())
    shutil.copy(only / "system.journal", only / "system@older.journal")
    restarts = {"5eb03494b6584870a536b337290809b3"}
    journal = Journal([folder], None, 3)
    assert len(journal.take_new({"MESSAGE_ID": restarts})) == 3
    journal.close()


def test_a_file_is_followed_until_it_is_archived(folder: Path) -> None:
    """journald goes offline whenever it has nothing to write: that is no end."""
    path = next(folder.iterdir()) / "system.journal"
    for state, open_files in ((0, 1), (1, 1), (2, 0)):
        data = bytearray(journal_files.content("compact"))
        data[16] = state
        path.write_bytes(data)
        journal = Journal([folder], None, 1000)
        journal.take_new(CHOSEN)
        assert len(journal._followed) == open_files
        journal.close()


def test_only_the_boot_that_runs_is_read(folder: Path) -> None:
    journal = Journal([folder], "00" * 16, 1000)
    assert journal.take_new(CHOSEN) == []
    journal.close()


def test_files_of_users_are_passed_over(tmp_path: Path) -> None:
    journal_files.write(tmp_path, "compact").rename(tmp_path / "user-1000.journal")
    with pytest.raises(SourceAbsent, match="no journal here"):
        Journal([tmp_path], None, 1000)


def test_a_damaged_file_is_named_and_the_others_are_read(folder: Path) -> None:
    (folder / "broken.journal").write_bytes(b"LPKSHHRH" + bytes(100))
    journal = Journal([folder], None, 1000)
    assert len(journal.take_new(CHOSEN)) == journal_files.OURS
    assert list(journal.damaged) == [str(folder / "broken.journal")]
    journal.close()


def test_nothing_but_damaged_files_is_said_aloud(tmp_path: Path) -> None:
    (tmp_path / "broken.journal").write_bytes(b"something else" * 50)
    with pytest.raises(SourceDenied, match="not a journal file"):
        Journal([tmp_path], None, 1000)


def test_the_latest_lines_of_a_unit_are_found(folder: Path) -> None:
    journal = Journal([folder], None, 1000)
    lines = [line.fields["MESSAGE"] for line in journal.read_lines("inside.service", 3)]
    journal.close()
    assert lines == ["Agent exited with code 4"] * 2 + [lines[-1]]


def test_entries_are_chosen_by_the_unit_that_wrote_them(folder: Path) -> None:
    journal = Journal([folder], None, 1000)
    found = journal.take_new({"_SYSTEMD_UNIT": "inside.service".__eq__}, lambda _: 3)
    assert [line.fields["MESSAGE"] for line in found][:2] == ["Agent exited with code 4"] * 2
    assert len(found) == 3  # of more, the latest
    assert {line.fields["_SYSTEMD_UNIT"] for line in found} == {"inside.service"}
    assert journal.take_new({"_SYSTEMD_UNIT": "inside.service".__eq__}, lambda _: 3) == []
    journal.close()


def test_no_more_kinds_are_followed_than_is_bounded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodescope.sources.systemd.journal._MAX_KINDS", 1)
    journal = Journal([folder], None, 1000)
    found = journal.take_new({"_SYSTEMD_UNIT": lambda unit: unit.endswith(".service")})
    assert len({line.fields["_SYSTEMD_UNIT"] for line in found}) == 1
    journal.close()


def test_where_the_journal_lies(tmp_path: Path) -> None:
    assert journal_folders(Places(journal=tmp_path)) == [tmp_path]
    assert journal_folders(Places(root=tmp_path)) == [
        tmp_path / "var/log/journal",
        tmp_path / "run/log/journal",
    ]


def test_two_systems_are_not_told_as_one(tmp_path: Path) -> None:
    """The rest of a system that was pointed at is where that system is, or nowhere."""
    bus = f"{tmp_path}/run/dbus/system_bus_socket"
    assert journal_folders(Places(systemd_bus=f"unix:path={bus}"))[0] == (
        tmp_path / "var/log/journal"
    )
    assert journal_folders(Places(systemd_bus="unix:abstract=x")) == []
    with pytest.raises(SourceAbsent, match="not known"):
        Journal.open(Places(systemd_bus="unix:abstract=x"))
    elsewhere = Places(journal=tmp_path / "var/log/journal")
    assert bus_addresses(elsewhere) == []
    Path(bus).parent.mkdir(parents=True)
    Path(bus).touch()
    assert bus_addresses(elsewhere) == [f"unix:path={bus}"]


def test_the_boot_is_written_as_the_journal_does(tmp_path: Path) -> None:
    assert read_boot_id(tmp_path) is None
    file = tmp_path / "sys/kernel/random/boot_id"
    file.parent.mkdir(parents=True)
    file.write_text("3abe481f-da6d-4d18-99a2-7f5d2760c0b5\n")
    assert read_boot_id(tmp_path) == "3abe481fda6d4d1899a27f5d2760c0b5"
