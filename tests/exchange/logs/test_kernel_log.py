from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.exchange.text_archive import import_file, read_rows

from nodescope.exchange.logs.kernel_lines import parse_line
from nodescope.exchange.logs.kernel_log import (
    looks_like_kernel_log,
    parse_kernel_log,
    subject_of,
)
from nodescope.ingest.parsed import Notes
from nodescope.recording.recording import Recording
from nodescope.records.event import Event

WATCHDOG = "NETDEV WATCHDOG: eth0 (ena): transmit queue 11 timed out"
ENA = "ena 0000:90:00.0 eth0: TX q 11 is paused for too long (threshold 5000000)"


def events(text: str | bytes, notes: Notes | None = None) -> list[Event]:
    raw = text.encode() if isinstance(text, str) else text
    return [event for batch in parse_kernel_log([raw], notes or Notes()) for event in batch]


@pytest.mark.parametrize(
    "line",
    [
        "[  123.456789] {}",
        "<4>[  123.456789] {}",
        "<4>[  123.456789][   T17] {}",
        "[  123.456789][    C3] {}",
        "kern  :warn  : [  123.456789] {}",
        "4,1234,123456789,-;{}",
        "4,1234,123456789,-,caller=T17;{}",
    ],
)
def test_forms_with_the_kernels_clock(line: str) -> None:
    parsed = parse_line(line.format(ENA))
    assert parsed is not None
    assert (parsed.clock, parsed.time_ns) == ("boot", 123_456_789_000)
    assert (parsed.facility, parsed.message) == ("kern", ENA)


def test_forms_with_wall_times() -> None:
    notes = Notes()
    text = f"2026-11-16T03:08:22,123456+02:00 {ENA}\nkern  :err   : 2026-11-16T03:08:23,5+02:00 x\n"
    first, second = events(text, notes)
    assert first == Event(1_794_791_302_123_456_000, "kernel", "ena", ENA)
    assert second.time_ns == 1_794_791_303_500_000_000
    assert notes.remarks == []
    (local,) = events(f"[Mon Nov 16 03:08:22 2026] {ENA}\n", notes)
    assert local.time_ns == int(time.mktime((2026, 11, 16, 3, 8, 22, 0, 0, -1))) * 1_000_000_000
    assert "local time" in notes.remarks[0]


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        (ENA, "ena"),
        (WATCHDOG, "kern"),
        ("watchdog: BUG: soft lockup - CPU#58 stuck for 23s! [kubelet:707658]", "watchdog"),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "rcu"),
        ("mlx5_core 0000:08:00.0 eth2 (unregistered): TX timeout detected", "mlx5_core"),
        ("EXT4-fs (sda1): mounted filesystem", "EXT4-fs"),
        ("INFO: task jbd2/sda1-8:123 blocked for more than 120 seconds.", "kern"),
        ("Memory cgroup out of memory: Killed process 1 (x) total-vm:1kB", "kern"),
        ("systemd[1]: Started x", "systemd"),
        ("usb 1-1: new device", "usb"),
        ("", "kern"),
    ],
)
def test_who_speaks(message: str, subject: str) -> None:
    assert subject_of(message, "kern") == subject


def test_a_line_without_a_stamp_goes_on_with_the_one_before() -> None:
    text = "6,1,1000000,-;usb 1-1: new\n SUBSYSTEM=usb\n DEVICE=c189:1\n6,2,2000000,-;next\n"
    first, second = events(text + "and more\n")
    assert first.message == "usb 1-1: new"
    assert second.message == "next\\nand more"


def test_messages_cannot_drive_a_terminal_and_are_bounded() -> None:
    first, second = events(b"[    1.0] a\x1b[31m\xff\x00b\n[    2.0] " + b"x" * 200_000 + b"\n")
    assert first.message == "a\\x1b[31m\ufffd\\x00b"
    assert len(second.message) < 65_536


def test_what_it_is_recognised_by() -> None:
    assert looks_like_kernel_log(b"[    0.000000] Linux version 6.1\n[    0.000000] Command line\n")
    assert looks_like_kernel_log(b"6,0,0,-;Linux version 6.1\n SUBSYSTEM=x\n5,1,0,-;Command\n")
    assert not looks_like_kernel_log(b"2026-11-16T03:08:22+0000 host sshd[1]: hello\n")
    assert not looks_like_kernel_log(b"a;b;c 12\n")
    assert not looks_like_kernel_log(b"")


def test_seconds_since_boot_are_placed_by_the_age_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "dmesg.txt"
    path.write_text(f"[  100.000000] first\n[  160.250000] {ENA}\n")
    os.utime(path, ns=(0, 1_700_000_000_000_000_000))
    report, archive = import_file(path, tmp_path / "archive")
    rows = [row for row in read_rows(archive, "events") if row["kind"] != "import"]
    assert [row["time_ns"] for row in rows] == [
        1_699_999_939_750_000_000,
        1_700_000_000_000_000_000,
    ]
    assert (rows[1]["kind"], rows[1]["subject"], rows[1]["message"]) == ("kernel", "ena", ENA)
    assert "last change" in report.clock_source


@pytest.mark.root
@pytest.mark.live
def test_real_dmesg_in_all_its_time_formats(tmp_path: Path) -> None:
    mark = f"nodescope-test-{os.getpid()}-{time.time_ns() % 10**6}"
    try:
        with open("/dev/kmsg", "w") as kmsg:
            kmsg.write(f"<4>{mark}: device 0000:90:00.0 eth9: hello\n")
        log = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs /dev/kmsg: {error}")
    if mark not in log:
        pytest.skip("needs a kernel log that keeps what is written to /dev/kmsg")
    written_ns = time.time_ns()
    uses = {
        "raw": [],
        "prefixes": ["-r"],
        "decorated": ["-x"],
        "ctime": ["-T"],
        "iso": ["--time-format", "iso"],
        "iso-decorated": ["-x", "--time-format", "iso"],
    }
    for name, options in uses.items():
        path = tmp_path / f"{name}.log"
        with path.open("w") as file:
            subprocess.run(["dmesg", *options], stdout=file, check=True)
        report, archive = import_file(path, tmp_path / name)
        found = [row for row in read_rows(archive, "events") if mark in row["message"]]
        assert len(found) == 1, name
        assert found[0]["message"] == f"{mark}: device 0000:90:00.0 eth9: hello"
        assert found[0]["subject"] == mark
        assert report.malformed == 0, name
        if name == "ctime":
            # dmesg -T adds the boot time to the kernel's clock, which drifts from it.
            assert abs(found[0]["time_ns"] - written_ns) < 3600 * 10**9


@pytest.mark.root
@pytest.mark.live
def test_a_real_dump_of_dev_kmsg(tmp_path: Path) -> None:
    mark = f"nodescope-kmsg-{os.getpid()}-{time.time_ns() % 10**6}"
    lines = []
    try:
        with open("/dev/kmsg", "w") as kmsg:
            kmsg.write(f"<30>{mark}[7]: hello\n")
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        pytest.skip(f"needs /dev/kmsg: {error}")
    try:
        while True:
            lines.append(os.read(descriptor, 8192))
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)
    path = tmp_path / "kmsg"
    path.write_bytes(b"".join(lines))
    report, archive = import_file(path, tmp_path / "archive")
    rows = [row for row in read_rows(archive, "events") if row["kind"] != "import"]
    assert len(rows) == len(lines)
    (mine,) = [row for row in rows if mark in row["message"]]
    assert mine["subject"] == mark
    assert report.stopped_at is None


def test_times_guessed_from_the_files_age_are_said_to_be_so_in_the_recording(
    tmp_path: Path,
) -> None:
    path = tmp_path / "dmesg.txt"
    path.write_text("[    1.000000] eth0: first\n[  100.500000] eth0: last\n")
    import_file(path, tmp_path / "archive")
    (said,) = Recording.open(tmp_path / "archive").estimated_times
    assert said.startswith("dmesg.txt: times are estimated from the file's age")
    dated = tmp_path / "dated.txt"
    dated.write_text("2026-11-16T03:08:22,123456+00:00 eth0: first\n")
    import_file(dated, tmp_path / "other")
    assert Recording.open(tmp_path / "other").estimated_times == []


def test_a_line_behind_a_prompt_of_a_console_has_its_own_time() -> None:
    log = b"[    1.120000] EXT4-fs (vda1): mounted filesystem\r\nhost login: [ 8123.400000] ena\r\n"
    told = [event for batch in parse_kernel_log([log], Notes()) for event in batch]
    assert [(event.time_ns // 10**9, event.message) for event in told] == [
        (1, "EXT4-fs (vda1): mounted filesystem"),
        (8123, "ena"),
    ]
