from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_rows

from nodescope.exchange.logs.journal import (
    looks_like_journal_json,
    looks_like_journal_text,
    parse_entry,
    parse_journal_json,
    parse_journal_text,
)
from nodescope.ingest.parsed import Notes
from nodescope.records.event import Event

ENTRY = {
    "__REALTIME_TIMESTAMP": "1794798502123456",
    "__MONOTONIC_TIMESTAMP": "500000000",
    "_HOSTNAME": "node-7",
    "_SYSTEMD_UNIT": "ecs.service",
    "SYSLOG_IDENTIFIER": "amazon-ecs-init",
    "_PID": "812",
    "MESSAGE": "Agent exited with code 5",
}
WALL_NS = 1_794_798_502_123_456_000


def text_events(text: str, notes: Notes | None = None) -> list[Event]:
    return [one for batch in parse_journal_text([text.encode()], notes or Notes()) for one in batch]


def test_an_entry_is_an_event_of_its_unit() -> None:
    event = parse_entry(ENTRY)
    assert event == Event(WALL_NS, "journal", "ecs.service", "Agent exited with code 5")


def test_what_the_service_manager_says_is_about_a_unit() -> None:
    entry = ENTRY | {"_PID": "1", "_SYSTEMD_UNIT": "init.scope", "UNIT": "ecs.service"}
    event = parse_entry(entry)
    assert event is not None
    assert event.subject == "ecs.service"
    forged = parse_entry(ENTRY | {"UNIT": "sshd.service"})
    assert forged is not None
    assert forged.subject == "ecs.service"


def test_the_kernel_is_heard_when_it_spoke() -> None:
    entry = ENTRY | {
        "_TRANSPORT": "kernel",
        "_SOURCE_MONOTONIC_TIMESTAMP": "499000000",
        "MESSAGE": "ena 0000:90:00.0 eth0: Trigger reset is on",
    }
    event = parse_entry(entry)
    assert event is not None
    assert (event.kind, event.subject) == ("kernel", "ena")
    assert event.time_ns == WALL_NS - 1_000_000_000


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ([104, 105, 27, 255], "hi\\x1b\ufffd"),
        (["first", "second"], "first"),
        ([[104, 105], "second"], "hi"),
        (None, ""),
        ({"a": 1}, ""),
        ("lone \ud800", "lone ?"),
        ("two\nlines", "two\\nlines"),
        ([], ""),
        ([300, -1], ""),
    ],
)
def test_messages_of_every_shape(message: object, text: str) -> None:
    event = parse_entry(ENTRY | {"MESSAGE": message})
    assert event is not None
    assert event.message == text


def test_a_journal_cut_inside_an_entry(tmp_path: Path) -> None:
    lines = [json.dumps(ENTRY | {"MESSAGE": f"number {number}"}) for number in range(5)]
    text = "\n".join(lines)
    path = tmp_path / "journal.json"
    path.write_text(text[:-20])
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_rows(archive, "events")
    assert [row["message"] for row in rows] == [f"number {number}" for number in range(4)]
    assert report.stopped_at == text.rindex("\n") + 1
    assert report.node == "node-7"


def test_lines_that_are_no_entry_are_counted() -> None:
    notes = Notes()
    raw = b'{"a": 1}\n[1\nnot json\n' + b"[" * 100_000 + b"\n" + json.dumps(ENTRY).encode() + b"\n"
    events = [event for batch in parse_journal_json([raw], notes) for event in batch]
    assert len(events) == 1
    assert notes.skipped.total() == 4


def test_short_iso_in_both_precisions() -> None:
    notes = Notes()
    text = """\
-- Journal begins at Mon 2026-11-16 01:00:00 UTC, ends at Mon 2026-11-16 03:00:00 UTC. --
2026-11-16T03:08:22+0000 node-7 kernel: ena 0000:90:00.0 eth0: Trigger reset is on
2026-11-16T03:08:22.123456+00:00 node-7 amazon-ecs-init[812]: Agent exited with code 5
                                 and a second line
-- Boot 3f0c --
2026-11-16T04:08:23+01:00 node-7 systemd[1]: ecs.service: Scheduled restart job.
"""
    first, second, third = text_events(text, notes)
    assert (first.time_ns, first.kind, first.subject, first.message) == (
        1_794_798_502_000_000_000,
        "nic_reset",
        "eth0",
        "ena 0000:90:00.0 eth0: Trigger reset is on",
    )
    assert second == Event(
        WALL_NS, "journal", "amazon-ecs-init", "Agent exited with code 5\\nand a second line"
    )
    assert third.time_ns == 1_794_798_503_000_000_000
    assert not notes.skipped
    assert notes.facts["nodename"] == "node-7"


def test_what_they_are_recognised_by() -> None:
    assert looks_like_journal_json(json.dumps(ENTRY).encode())
    assert not looks_like_journal_json(b'{"sysstat": {"hosts": []}}')
    assert looks_like_journal_text(b"2026-11-16T03:08:22+0000 host sshd[1]: hello\n")
    assert not looks_like_journal_text(b"2026-11-16T03:08:22,123456+00:00 usb 1-1: new\n")
    assert not looks_like_journal_text(b"")


@pytest.mark.skipif(shutil.which("systemd-cat") is None, reason="needs systemd")
def test_a_real_journal(tmp_path: Path) -> None:
    mark = f"nodescope-test-{os.getpid()}"
    if not os.path.exists("/run/systemd/journal/stdout"):
        pytest.skip("needs a running systemd-journald")
    subprocess.run(["systemd-cat", "-t", mark, "echo", "hello"], check=True)
    subprocess.run(["journalctl", "--sync"], check=True)
    for form in ("json", "short-iso", "short-iso-precise"):
        path = tmp_path / form
        with path.open("w") as file:
            subprocess.run(["journalctl", "-t", mark, "-o", form], stdout=file, check=True)
        _, archive = import_file(path, tmp_path / f"{form}-archive")
        (row,) = read_rows(archive, "events")
        assert row["message"] == "hello"
