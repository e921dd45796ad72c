"""Kernel log lines as people paste them: every form, with its time."""

from __future__ import annotations

import calendar
import time
from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_rows

from nodescope.exchange.logs.kernel_lines import parse_line
from nodescope.exchange.logs.kernel_log import looks_like_kernel_log, parse_kernel_log
from nodescope.ingest.parsed import Notes
from nodescope.records.event import Event

OOPS = "BUG: unable to handle page fault for address: 0000000000001234"
WRITTEN_NS = calendar.timegm((2026, 11, 17, 12, 0, 0)) * 10**9


def local_ns(*fields: int) -> int:
    year, month, day, hour, minute, second = fields
    return int(time.mktime((year, month, day, hour, minute, second, 0, 0, -1))) * 10**9


def events(text: str, notes: Notes) -> list[Event]:
    return [event for batch in parse_kernel_log([text.encode()], notes) for event in batch]


@pytest.mark.parametrize(
    "line",
    [
        "[   36.560762 <    0.000012>] {}",
        "[   36.560762] kernel: {}",
        "[   36.560762] node-7 kernel: {}",
        "\x1b[0;33m[   36.560762] {}",
        "\r[   36.560762] {}",
    ],
)
def test_seconds_since_boot(line: str) -> None:
    parsed = parse_line(line.format(OOPS))
    assert parsed is not None
    assert (parsed.clock, parsed.time_ns, parsed.message) == ("boot", 36_560_762_000, OOPS)


@pytest.mark.parametrize(
    ("line", "time_ns", "zoned"),
    [
        (
            "192.168.11.119: kern: warning: [2026-04-22T21:27:51.291283179Z]: {}",
            calendar.timegm((2026, 4, 22, 21, 27, 51)) * 10**9 + 291_283_179,
            True,
        ),
        (
            "2021-10-13T19:59:49.015+01:00| vcpu-0| I005: Guest: [    3.25] {}",
            calendar.timegm((2021, 10, 13, 18, 59, 49)) * 10**9 + 15_000_000,
            True,
        ),
        (
            "10.5.0.3: kern:    info: [2026-04-22T21:27:51.000000000Z]: {}",  # padded
            calendar.timegm((2026, 4, 22, 21, 27, 51)) * 10**9,
            True,
        ),
        ("[Nov16 03:08] {}", local_ns(2026, 11, 16, 3, 8, 0), False),
        ("[Dec31 03:08] {}", local_ns(2025, 12, 31, 3, 8, 0), False),  # not after the file
        ("[Nov 6 03:08] {}", local_ns(2026, 11, 6, 3, 8, 0), False),
    ],
)
def test_wall_times(line: str, time_ns: int, zoned: bool) -> None:
    parsed = parse_line(line.format(OOPS), WRITTEN_NS)
    assert parsed is not None
    assert (parsed.clock, parsed.time_ns, parsed.zoned) == ("wall", time_ns, zoned)
    assert parsed.message == OOPS


def test_differences_are_added_up_from_the_last_time() -> None:
    notes = Notes(written_ns=WRITTEN_NS)
    text = "[Nov16 03:08] one\n[  +2.500000] two\n[  +0.250000] three\n[Nov16 03:09] four\n"
    times = [event.time_ns for event in events(text, notes)]
    start = local_ns(2026, 11, 16, 3, 8, 0)
    assert [each - start for each in times] == [0, 2_500_000_000, 2_750_000_000, 60_000_000_000]
    assert any("no year" in each for each in notes.remarks)
    assert any("no zone" in each for each in notes.remarks)


def test_a_piece_of_human_output_begins_at_its_first_line() -> None:
    notes = Notes()
    found = events(f"[  +0.005106] {OOPS}\n[<    1.000000>] next\n", notes)
    assert [event.time_ns for event in found] == [5_106_000, 1_005_106_000]
    assert notes.facts["clock"] == "boot"
    assert "differences" in notes.remarks[0]


def test_a_console_with_few_lines_of_the_kernel_is_recognised() -> None:
    kernel = "".join(f"[   {number}.000000] line {number}\n" for number in range(30))
    other = "".join(f"ci-info: | eth{number} | True |\n" for number in range(100))
    assert looks_like_kernel_log((kernel + other).encode())
    assert not looks_like_kernel_log((other + "[   1.000000] one\n").encode())


@pytest.mark.parametrize("line", ["[Foo16 03:08] x", "[  +x] y", "host: what: ever: [z]: m", "[]"])
def test_what_only_looks_alike_has_no_stamp(line: str) -> None:
    assert parse_line(line, WRITTEN_NS) is None


def test_human_output_is_imported(tmp_path: Path) -> None:
    """Issue 14: refused as "not a capture" before."""
    log = tmp_path / "dmesg.txt"
    log.write_text(f"[Nov16 03:08] {OOPS}\n[  +0.005106] Call Trace:\n[  +0.000002]  panic+0x1\n")
    _, archive = import_file(log, tmp_path / "archive")
    messages = [row["message"] for row in read_rows(archive, "events")]
    assert any(message.startswith(OOPS) for message in messages)
