"""Journals in systemd's export format."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_rows

from nodescope.exchange.logs.journal_export import looks_like_journal_export, parse_journal_export
from nodescope.ingest.parsed import Notes
from nodescope.records.event import Event

RESET = "ena 0000:20:03.0 eth0: Trigger reset is on"
TWO_LINES = "first\nsecond"
KERNEL = (
    b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1794798502123456\n__MONOTONIC_TIMESTAMP=500000000\n"
    b"_TRANSPORT=kernel\n_SOURCE_MONOTONIC_TIMESTAMP=499000000\n_HOSTNAME=node-7\n"
    b"SYSLOG_FACILITY=0\nMESSAGE=" + RESET.encode() + b"\n\n"
)
DAEMON = (
    b"__CURSOR=s=2\n__REALTIME_TIMESTAMP=1794798503000000\n_SYSTEMD_UNIT=ecs.service\nMESSAGE\n"
    + len(TWO_LINES).to_bytes(8, "little") + TWO_LINES.encode() + b"\n_PID=812\n\n"
)  # fmt: skip


def events(raw: bytes, notes: Notes, size: int = 1 << 20) -> list[Event]:
    blocks = [raw[at : at + size] for at in range(0, len(raw), size)]
    return [event for batch in parse_journal_export(blocks, notes) for event in batch]


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_entries_are_events_whatever_the_blocks(size: int) -> None:
    notes = Notes()
    reset, said = events(KERNEL + DAEMON, notes, size)
    assert (reset.kind, reset.time_ns) == ("nic_reset", 1_794_798_501_123_456_000)
    assert (said.subject, said.message) == ("ecs.service", "first\\nsecond")
    assert notes.facts["nodename"] == "node-7"
    assert notes.stopped is None


@pytest.mark.parametrize("cut", [len(KERNEL) + 30, len(KERNEL + DAEMON) - 16])
def test_a_cut_file_is_imported_up_to_there(cut: int) -> None:
    notes = Notes()
    assert [event.kind for event in events((KERNEL + DAEMON)[:cut], notes)] == ["nic_reset"]
    assert notes.stopped == "it ends in the middle of an entry"


def test_a_field_that_claims_to_be_endless_is_not_read() -> None:
    notes = Notes()
    raw = b"__CURSOR=s=2\n__REALTIME_TIMESTAMP=1\nMESSAGE\n" + b"\xff" * 8 + b"x"
    assert events(KERNEL + raw, notes)[0].kind == "nic_reset"
    assert "longer" in str(notes.stopped)


def test_it_is_recognised_and_imported(tmp_path: Path) -> None:
    assert looks_like_journal_export(KERNEL)
    assert not looks_like_journal_export(b"__CURSOR=nothing else\n\n")
    log = tmp_path / "journal.export"
    log.write_bytes(KERNEL + DAEMON)
    report, archive = import_file(log, tmp_path / "archive")
    assert report.format == "journal export"
    kinds = {row["kind"] for row in read_rows(archive, "events")}
    assert {"nic_reset", "journal"} <= kinds
