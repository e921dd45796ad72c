from __future__ import annotations

import io
import json
from collections.abc import Callable
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
        "--cpus=0-2,5",
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
    assert f"recording to {archive} for 1 s" in recorded.err
    document = json.loads(nodescope("status", "--archive", archive, "--json").out)
    assert document["segments"] >= 1
    assert document["tables"]["cores"]["rows"] > 0
    assert document["recording"] is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_one_line_that_changes() -> None:
    terminal = Terminal()
    console = Console(terminal)
    console.update(PROGRESS)
    line = render_progress(PROGRESS)
    console.warn("a core went offline")
    console.finish("done")
    wiped = "\r" + " " * len(line) + "\r"
    assert terminal.getvalue() == (
        f"{line}{wiped}nodescope: a core went offline\nnodescope: done\n"
    )


def test_a_log_sees_no_progress_unless_verbose_and_then_seldom() -> None:
    log, verbose = io.StringIO(), io.StringIO()
    Console(log).update(PROGRESS)
    assert log.getvalue() == ""
    console = Console(verbose, verbose=True)
    console.update(PROGRESS)
    console.update(PROGRESS)
    assert verbose.getvalue().count("2,345 samples") == 1


def test_quiet_still_warns() -> None:
    stream = Terminal()
    console = Console(stream, quiet=True)
    console.say("usual")
    console.update(PROGRESS)
    console.warn("unusual")
    console.finish("done")
    assert stream.getvalue() == "nodescope: unusual\n"


def test_progress_says_when_it_is_paused() -> None:
    from dataclasses import replace

    assert "PAUSED" not in render_progress(PROGRESS)
    assert "PAUSED" in render_progress(replace(PROGRESS, paused=True))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frequency", "99999999"], "--frequency"),
        (["--ring-size", "100KB"], "--ring-size"),
        (["--cpus", "8000"], "none of them is online"),
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
