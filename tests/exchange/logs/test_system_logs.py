"""System logs as syslog and journalctl write them: /var/log/messages, short, with-unit, …"""

from __future__ import annotations

import calendar
import os
import time
from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_rows

from nodescope.errors import NodescopeError
from nodescope.exchange.import_formats import find_format
from nodescope.exchange.logs.journal import looks_like_journal_text, parse_journal_text
from nodescope.ingest.parsed import Notes
from nodescope.records.event import Event

RESET = "ena 0000:20:03.0 eth0: Trigger reset is on"
WRITTEN_NS = calendar.timegm((2026, 11, 17, 12, 0, 0)) * 10**9


def local_ns(*fields: int) -> int:
    year, month, day, hour, minute, second = fields
    return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1))) * 10**9


def events(text: str, notes: Notes) -> list[Event]:
    return [event for batch in parse_journal_text([text.encode()], notes) for event in batch]


@pytest.mark.parametrize(
    ("line", "time_ns"),
    [
        ("Jul 12 15:12:04 node-7 kernel: [12345.678901] {}", local_ns(2026, 7, 12, 15, 12, 4)),
        ("Aug  6 22:37:33 node-7 kernel: {}", local_ns(2026, 8, 6, 22, 37, 33)),
        ("Dec 24 01:02:03 node-7 kernel: {}", local_ns(2025, 12, 24, 1, 2, 3)),
        ("Feb 29 01:02:03 node-7 kernel: {}", local_ns(2024, 2, 29, 1, 2, 3)),
        (
            "Nov 17 09:19:25.917243 node-7 kernel: {}",
            local_ns(2026, 11, 17, 9, 19, 25) + 917_243_000,
        ),
        (
            "Mon 2026-11-16 03:08:22 UTC node-7 kernel: {}",
            calendar.timegm((2026, 11, 16, 3, 8, 22)) * 10**9,
        ),
        (
            "2023-06-21T10:09:55.693976+02:00 node-7 kernel - - - [1154069.463446] {}",
            calendar.timegm((2023, 6, 21, 8, 9, 55)) * 10**9 + 693_976_000,
        ),
        (
            '<3>1 2023-06-21T10:09:55Z node-7 kernel - - [meta sequenceId="7"] {}',
            calendar.timegm((2023, 6, 21, 10, 9, 55)) * 10**9,
        ),
        ("<3>Jul 12 15:12:04 node-7 kernel: {}", local_ns(2026, 7, 12, 15, 12, 4)),
    ],
)
def test_a_line_of_the_kernel_is_what_it_says(line: str, time_ns: int) -> None:
    notes = Notes(written_ns=WRITTEN_NS)
    (event,) = events(line.format(RESET) + "\n", notes)
    assert (event.kind, event.subject, event.time_ns) == ("nic_reset", "eth0", time_ns)
    assert notes.facts["nodename"] == "node-7"


def test_what_was_assumed_of_times_is_said() -> None:
    notes = Notes(written_ns=WRITTEN_NS)
    events("Jul 12 15:12:04 node-7 sshd[12]: hello\n", notes)
    assert any("no year" in each for each in notes.remarks)
    assert any("no zone" in each for each in notes.remarks)
    exact = Notes(written_ns=WRITTEN_NS)
    events("Mon 2026-11-16 03:08:22 UTC node-7 sshd.service[12]: hello\n", exact)
    assert exact.remarks == []


def test_daemons_lines_are_theirs() -> None:
    (event,) = events("Jul 12 15:12:04 node-7 sshd[12]: Accepted key\n", Notes())
    assert (event.kind, event.subject, event.message) == ("journal", "sshd", "Accepted key")


def test_a_file_of_such_lines_is_imported(tmp_path: Path) -> None:
    """Issue 14: refused as "not a capture" before."""
    log = tmp_path / "messages"
    log.write_text(
        f"Jul 12 15:12:04 node-7 kernel: [1.0] {RESET}\n"
        "Jul 12 15:12:05 node-7 kubelet[7]: fine\n"
        "not a line of a log\n"
    )
    os.utime(log, ns=(WRITTEN_NS, WRITTEN_NS))
    report, archive = import_file(log, tmp_path / "archive")
    rows = read_rows(archive, "events")
    assert [row["kind"] for row in rows if row["kind"] != "import"] == ["nic_reset", "journal"]
    assert any("1 lines that are no journal entry" in note for note in report.notes)


def test_other_text_is_no_log() -> None:
    assert not looks_like_journal_text(b"Jul 12 15:12:04\nMay the force be with you\n")
    assert not looks_like_journal_text(b"Monday 2026-11-16 was fine: all of it\n")


def test_what_is_refused_names_the_form_that_came_nearest(tmp_path: Path) -> None:
    log = tmp_path / "mixed.txt"
    log.write_text("free text\n" * 30 + f"[    1.000000] {RESET}\n" * 3 + "more\n")
    with pytest.raises(NodescopeError) as refused:
        find_format(log)
    assert "nearest is a kernel log: 3 of 33 lines have its form" in str(refused.value)


def test_what_systemd_writes_of_units_is_about_them_but_not_what_a_users_manager_does() -> None:
    line = "Jul 12 15:12:04 node-7 systemd[{}]: app.service: Failed with result 'exit-code'.\n"
    (mine,) = events(line.format(1), Notes())
    assert (mine.kind, mine.subject) == ("unit_failed", "app.service")
    (users,) = events(line.format(1500), Notes())
    assert users.kind == "journal"
