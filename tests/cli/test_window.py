from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.conftest import SAMPLES, HandClock, write_archive
from tests.analysis.conftest import _append as append_samples

from nodescope.archive.writer import ArchiveWriter
from nodescope.cli.moment import parse_time_ns
from nodescope.cli.window import choose_window, with_progress
from nodescope.errors import UsageError
from nodescope.quantities import HOUR_NS, SECOND_NS
from nodescope.recording.window import TimeExtent, Window
from nodescope.wall_time import format_moment, format_time_of_day

Nodescope = Callable[..., Any]
NOON = 1_777_636_800 * SECOND_NS  # 2026-05-01T12:00:00Z


@dataclass
class Recorded:
    """An extent without segments."""

    from_ns: int
    to_ns: int

    def clip(self, window: Window) -> Window:
        return Window(max(window.from_ns, self.from_ns), min(window.to_ns, self.to_ns))


def extent(from_ns: int = NOON - HOUR_NS, to_ns: int = NOON + HOUR_NS) -> TimeExtent:
    return cast(TimeExtent, Recorded(from_ns, to_ns))


def ask(**options: object) -> Window:
    given_options: dict[str, object] = dict.fromkeys(("start", "end", "at", "around", "last"))
    args = argparse.Namespace(**(given_options | options))
    return choose_window(args, extent(), NOON)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment_ns"),
    [
        ("2026-05-01T12:00:05Z", NOON + 5 * SECOND_NS),
        ("2026-05-01 12:00", NOON),
        ("2026-05-01T14:00:05+02:00", NOON + 5 * SECOND_NS),
        ("12:00:05", NOON + 5 * SECOND_NS),
        ("12:00:05.250", NOON + 5 * SECOND_NS + SECOND_NS // 4),
        ("12:00", NOON),
        ("12:00:05Z", NOON + 5 * SECOND_NS),
        ("+60s", NOON - HOUR_NS + 60 * SECOND_NS),
        ("+1h30m", NOON + HOUR_NS // 2),
        ("@1777636800", NOON),
        ("now", NOON),
    ],
)
def test_moments_of_a_recording(text: str, moment_ns: int) -> None:
    assert parse_time_ns(text, extent(), NOON) == moment_ns


def test_a_time_of_day_is_the_one_that_was_recorded() -> None:
    over_midnight = extent(NOON + 11 * HOUR_NS, NOON + 14 * HOUR_NS)
    assert parse_time_ns("23:30", over_midnight, NOON) == NOON + 23 * HOUR_NS // 2
    assert parse_time_ns("00:30", over_midnight, NOON) == NOON + 25 * HOUR_NS // 2


@pytest.mark.parametrize(
    "text",
    ["12:00:05", "12:00:05Z", "12:00:05 UTC", "08:00:05-04:00", "01:00:05+13:00", "22:00:05-1400"],
)
def test_a_time_of_day_without_zone_is_utc_and_a_zone_may_be_given(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 13, point 1."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    assert parse_time_ns(text, extent(), NOON) == NOON + 5 * SECOND_NS


def test_an_impossible_time_of_day_is_repeated_as_it_was_written() -> None:
    with pytest.raises(UsageError, match="not a time of day: '25:00'") as caught:
        parse_time_ns("25:00", extent(), NOON)
    assert "+60s" in str(caught.value.hint)


@pytest.mark.parametrize("command", ["cores", "top", "heatmap", "flame", "quality"])
def test_cores_that_were_not_recorded_are_refused(
    command: str, tmp_path: Path, nodescope: Nodescope
) -> None:
    """Issue 13, point 7: `--cpu 9` answered nothing, with exit code 0."""
    write_archive(tmp_path / "a", [SAMPLES])
    result = nodescope(command, "--archive", tmp_path / "a", "--cpu", "0,90-91")
    assert (result.code, result.out) == (2, "")
    assert "the recording has no cores 90-91" in result.err
    assert "hint: cores here: 0" in result.err


@given(st.integers(0, 2 * 3600 - 1))
def test_any_second_of_a_recording_can_be_named_in_every_way(second: int) -> None:
    moment = NOON - HOUR_NS + second * SECOND_NS
    of_day = format_time_of_day(moment)
    epoch = f"@{moment // SECOND_NS}"
    for text in (f"+{second}s", of_day, of_day.removesuffix("Z"), format_moment(moment), epoch):
        assert parse_time_ns(text, extent(), NOON) == moment


@given(st.one_of(st.text(max_size=12), st.from_regex(r"\+?\d{1,3}:\d{2}(:\d{2})?Z?|\+\w{0,4}")))
def test_any_text_is_a_time_or_a_usage_error(text: str) -> None:
    try:
        assert parse_time_ns(text, extent(), NOON) >= 0
    except UsageError:
        pass


@pytest.mark.parametrize(
    ("options", "window"),
    [
        ({}, (NOON - HOUR_NS, NOON + HOUR_NS)),
        ({"at": "12:00"}, (NOON - 5 * SECOND_NS, NOON + 5 * SECOND_NS)),
        ({"at": "12:00", "around": SECOND_NS}, (NOON - SECOND_NS, NOON + SECOND_NS)),
        ({"last": 60 * SECOND_NS}, (NOON + HOUR_NS - 60 * SECOND_NS, NOON + HOUR_NS)),
        ({"last": 24 * HOUR_NS}, (NOON - HOUR_NS, NOON + HOUR_NS)),
        ({"start": "12:00"}, (NOON, NOON + HOUR_NS)),
        ({"end": "12:00"}, (NOON - HOUR_NS, NOON)),
        (
            {"start": "+10s", "end": "+20s"},
            (NOON - HOUR_NS + 10 * SECOND_NS, NOON - HOUR_NS + 20 * SECOND_NS),
        ),
        ({"start": "2020-01-01", "end": "2030-01-01"}, (NOON - HOUR_NS, NOON + HOUR_NS)),
    ],
)
def test_windows(options: dict[str, object], window: tuple[int, int]) -> None:
    assert ask(**options) == Window(*window)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": "12:00", "last": SECOND_NS}, "each choose a window"),
        ({"around": SECOND_NS}, "--around needs --at"),
        ({"start": "12:30", "end": "12:00"}, "ends before it starts"),
        ({"start": "2030-01-01"}, "nothing was recorded from 2030-01-01T00:00:00.000Z on"),
        ({"at": "2020-01-01"}, "nothing was recorded"),
        ({"at": "soon"}, "not a time"),
    ],
)
def test_windows_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        ask(**options)
    assert caught.value.hint


@pytest.mark.parametrize("command", ["heatmap", "cores", "flame", "top", "events"])
def test_a_window_outside_says_what_is_covered(
    command: str, tmp_path: Path, nodescope: Nodescope
) -> None:
    write_archive(tmp_path / "a", [SAMPLES])
    result = nodescope(command, "--archive", tmp_path / "a", "--from", "2030-01-01")
    assert result.code == 2
    assert result.err.splitlines()[-1] == (
        "hint: the recording covers 2023-11-14T22:13:20.000Z to 2023-11-14T22:15:19.000Z"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--frame", "("], "--frame: not a regular expression: '('"),
        (["--no-frame", "*"], "--no-frame: not a regular expression"),
        (["--pid", "x"], "argument --pid: not process ids: 'x'"),
        (["--limit", "-1"], "argument --limit"),
        (["--cpu", "5-1"], "argument --cpu: not a list of CPUs"),
        (["--mode", "guest"], "argument --mode: not a mode: 'guest'"),
        (["--last", "2 weeks"], "argument --last: not a duration"),
        (["--at", "+5x"], "not a time: '+5x'"),
        (["--at", "25:99"], "not a time of day: '25:99'"),
        (["--output", "x.gif"], "not a kind of picture"),
        (["--output", "/nowhere/x.svg"], "/nowhere/x.svg: No such file or directory"),
    ],
)
def test_options_that_cannot_be(
    arguments: list[str], message: str, tmp_path: Path, nodescope: Nodescope
) -> None:
    write_archive(tmp_path / "a", [SAMPLES])
    result = nodescope("heatmap", "--archive", tmp_path / "a", *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert result.err.splitlines()[-1].startswith("hint: ")
    if "--at" in arguments:
        assert "+60s" in result.err.splitlines()[-1]


def test_progress_is_shown_on_a_terminal_after_two_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = iter(range(100))
    monkeypatch.setattr("nodescope.cli.window.time.monotonic", lambda: float(next(now)))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert list(with_progress("abcd", 4)) == list("abcd")
    shown = capsys.readouterr().err
    assert "2 of 4 segments" in shown
    assert "1 of 4 segments" not in shown
    assert shown.endswith("\r\x1b[K")
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    assert list(with_progress("abcd", 4)) == list("abcd")
    assert capsys.readouterr().err == ""


def test_the_open_segment_is_shown_and_left_alone_where_it_is_not_needed(
    tmp_path: Path, nodescope: Nodescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_archive(tmp_path / "a", [SAMPLES])
    clock = HandClock()
    clock.now += 500 * SECOND_NS
    with ArchiveWriter.open(
        tmp_path / "a", node={"name": "hand", "boot_id": "b"}, clock=clock, tick_ns=1000
    ) as writer:
        append_samples(writer, SAMPLES, clock.now)
        writer.flush()
        every = nodescope("flame", "--archive", tmp_path / "a", "--json")
        assert json.loads(every.out)["value"] == 2 * len(SAMPLES)
        last = nodescope("flame", "--archive", tmp_path / "a", "--last", "1m", "--json")
        assert json.loads(last.out)["value"] == 1

        def forbidden(*_: object) -> None:
            raise AssertionError("the open segment was read")

        with monkeypatch.context() as patch:
            patch.setattr("nodescope.archive.seal.read_opened", forbidden)
            early = nodescope("top", "--archive", tmp_path / "a", "--to", "+10s", "--json")
        assert sum(entry["samples"] for entry in json.loads(early.out)) == 5
