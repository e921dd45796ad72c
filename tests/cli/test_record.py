from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import termios
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodescope.cli.main import build_parser
from nodescope.cli.record import Console, recorder_options, render_progress
from nodescope.recorder.options import RecorderOptions
from nodescope.recorder.recorder import Progress

Nodescope = Callable[..., Any]
PROGRESS = Progress(
    elapsed_ns=12_300_000_000,
    samples=2345,
    lost=0,
    cpu_ratio=0.004,
    rss_bytes=60 << 20,
    written_bytes=8 << 10,
    frequency_hz=97,
    paused=False,
)


def _parse(*arguments: str) -> RecorderOptions:
    return recorder_options(build_parser(["record"]).parse_args(["record", *arguments]))


def test_the_defaults_are_the_recorders_own() -> None:
    assert _parse("--archive", "/a") == RecorderOptions(Path("/a"))


def test_every_option_reaches_the_recorder() -> None:
    assert _parse(
        "--archive=/a",
        "--duration=30s",
        "--frequency=49",
        "--ring-size=256KiB",
        "--cpu=0-2,5",
        "--core-interval=100ms",
        "--segment=1m",
        "--flush=2s",
        "--retention-age=1h",
        "--retention-size=1GiB",
        "--budget-cpu=2.5%",
        "--budget-memory=80MB",
    ) == RecorderOptions(
        Path("/a"),
        duration_ns=30_000_000_000,
        frequency_hz=49,
        ring_bytes=256 << 10,
        cpus=(0, 1, 2, 5),
        core_interval_ns=100_000_000,
        segment_ns=60_000_000_000,
        flush_ns=2_000_000_000,
        retention_age_ns=3_600_000_000_000,
        retention_bytes=1 << 30,
        budget_cpu_ratio=0.025,
        budget_memory_bytes=80_000_000,
    )


def test_a_recording_made_by_the_command_is_what_status_shows(
    tmp_path: Path, nodescope: Nodescope
) -> None:
    archive = tmp_path / "archive"
    recorded = nodescope("record", "--archive", archive, "--duration", "1s")
    assert (recorded.code, recorded.out) == (0, "")
    lines = recorded.err.splitlines()
    assert lines[0] == f"nodescope: recording to {archive} for 1 s"
    assert lines[-2].startswith("nodescope: 1 s  ")
    assert " written  " in lines[-2]
    document = json.loads(nodescope("status", "--archive", archive, "--json").out)
    assert document["segments"] >= 1
    assert document["tables"]["cores"]["rows"] > 0
    assert document["recording"] is None
    # However short it was: over its time, starting included.
    assert 0 < document["recorder"]["cpu_ratio"] < 2
    assert document["recorder"]["cpu_ns"] > 0
    # One definition: the recorder's last line and status show the same figures.
    status = nodescope("status", "--archive", archive).out
    cost = [part for part in lines[-2].split("  ") if part.endswith(("of one core", "resident"))]
    assert len(cost) == 2
    assert ", ".join(cost) in status


def test_cores_that_are_not_online_are_said(tmp_path: Path, nodescope: Nodescope) -> None:
    cpu = min(os.sched_getaffinity(0))
    asked = ("--cpu", f"{cpu},8000-8001", "--duration", "300ms", "--without", "all")
    recorded = nodescope("record", "--archive", tmp_path / "archive", *asked)
    assert recorded.code == 0
    assert (
        "samples: not online, and sampled once they are: cores 8000-8001 of --cpu" in recorded.err
    )


@pytest.mark.parametrize(
    ("place", "hint"),
    [("/etc/passwd", "a file is where a folder should be"), ("/proc/x", "no folder can be made")],
)
def test_an_archive_that_cannot_be_made_comes_with_a_hint(
    place: str, hint: str, nodescope: Nodescope
) -> None:
    result = nodescope("record", "--archive", place, "--duration", "1s")
    assert result.code == 2
    assert f"nodescope: error: {place}: " in result.err
    assert f"hint: {hint}" in result.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_one_line_that_changes() -> None:
    terminal = Terminal()
    console = Console(terminal)
    console.update(PROGRESS)
    console.update(PROGRESS)
    line = render_progress(PROGRESS, 79)
    console.warn("a core went offline")
    console.sealed(PROGRESS)
    console.finish("done")
    assert terminal.getvalue() == (
        f"\r{line}\x1b[K\r{line}\x1b[K\r\x1b[Knodescope: a core went offline\nnodescope: done\n"
    )


def test_the_last_line_of_progress_stays() -> None:
    terminal = Terminal()
    console = Console(terminal)
    console.update(PROGRESS)
    console.finish("done")
    assert terminal.getvalue().endswith("\x1b[K\nnodescope: done\n")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_line_never_wraps(columns: int) -> None:
    large = replace(
        PROGRESS,
        elapsed_ns=359_999_000_000_000,
        samples=1_234_567_890,
        lost=9_876_543,
        written_bytes=5 << 30,
        rss_bytes=123 << 20,
        paused=True,
    )
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(slave, "w") as terminal:
        Console(terminal).update(large)
        shown = os.read(master, 4096).decode()
    os.close(master)
    line = shown.removeprefix("\r").removesuffix("\x1b[K")
    assert len(line) < columns
    assert "PAUSED: no room" in line  # what matters most comes first
    assert ("97 Hz" in line) == (columns == 200)


def test_a_log_gets_the_first_segment_then_a_line_an_hour_and_the_end() -> None:
    log = io.StringIO()
    console = Console(log)
    assert not console.shows_progress
    for minute in range(2, 200, 2):
        console.sealed(replace(PROGRESS, elapsed_ns=minute * 60_000_000_000))
    console.sealed(replace(PROGRESS, elapsed_ns=200 * 60_000_000_000, ended=True))
    console.finish("done")
    told = [line.split("  ")[0] for line in log.getvalue().splitlines()]
    assert told == [
        "nodescope: 2m", "nodescope: 1h 2m", "nodescope: 2h 2m", "nodescope: 3h 2m",
        "nodescope: 3h 20m", "nodescope: done",
    ]  # fmt: skip


def test_a_verbose_log_gets_progress_every_ten_seconds() -> None:
    log = io.StringIO()
    console = Console(log, verbose=True)
    assert console.shows_progress
    for second in range(12, 34, 2):
        console.update(replace(PROGRESS, elapsed_ns=second * 1_000_000_000))
    assert log.getvalue().count("2,345 samples") == 3


def test_quiet_still_warns() -> None:
    stream = Terminal()
    console = Console(stream, quiet=True)
    console.say("usual")
    console.update(PROGRESS)
    console.sealed(PROGRESS)
    console.warn("unusual")
    console.finish("done")
    assert stream.getvalue() == "nodescope: unusual\n"


def test_progress_says_when_it_is_paused() -> None:
    assert "PAUSED" not in render_progress(PROGRESS)
    assert "PAUSED" in render_progress(replace(PROGRESS, paused=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frequency", "99999999"], "--frequency"),
        (["--ring-size", "100KB"], "--ring-size"),
        (["--cpu", "8000"], "none of them is online"),
        (["--flush", "5m"], "--flush"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_made(
    arguments: list[str], message: str, tmp_path: Path, nodescope: Nodescope
) -> None:
    result = nodescope("record", "--archive", tmp_path / "a", *arguments)
    assert result.code == 2
    assert message in result.err
    assert "hint: " in result.err
    assert not (tmp_path / "a").exists()


def test_a_flush_is_never_longer_than_a_segment_unless_asked_for() -> None:
    assert _parse("--segment", "4s").flush_ns == 4_000_000_000
    assert _parse("--segment", "1m").flush_ns == 5_000_000_000


def test_a_flush_longer_than_a_segment_is_refused_in_a_sentence(
    nodescope: Nodescope, tmp_path: Path
) -> None:
    result = nodescope("record", "--archive", tmp_path / "a", "--segment", "4s", "--flush", "5s")
    assert result.code == 2
    assert "--flush 5 s is longer than --segment 4 s" in result.err
    assert "recording to" not in result.err  # it never began
    result = nodescope("record", "--archive", tmp_path / "a", "--flush", "5ms")
    assert "--flush 5 ms is too short" in result.err


def test_diagnose_shows_its_own_default_around_a_moment(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        build_parser(["diagnose"]).parse_args(["diagnose", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "this much before and after (default: 2m)" in out
    assert "'5m ago' or @SECONDS since 1970" in out
