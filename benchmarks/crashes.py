"""Fifty `kill -9` at random moments, under load: every archive must open, lack at most one flush
interval, and keep its sealed segments byte for byte. A full disk, a stepped wall clock and a
recorder stopped for 10 s must show as what they are.

Short segments (1 s) and flushes (300 ms) make every phase likely; what the
kills met is counted. One kill in five falls into start-up, where the
segment that the last kill left open is being recovered. What is missing is
the time from the kill back to the last record in the archive; the cores'
time is read every 50 ms, so that a record is never far. To one flush
interval comes a slack of 250 ms: a flush takes its own time (it syncs to
disk, and every third one seals a segment first), and on a machine where
every core is busy the recorder waits its turn.

How it could be fooled: by a recorder that writes nothing (the samples of the
whole are shown), by kills that all meet it asleep (what they met is shown), or
by the page cache: `kill -9` does not lose what was written and not synced, a
power cut does. That flushes are synced is shown by tests, not here.
"""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.recorder_process import (
    RecorderProcess,
    column,
    event_kinds,
    fill_up,
    find_faketime,
    gap_reasons,
    recording,
    said,
    status,
)

from benchmarks.load import many_short_processes
from benchmarks.results import Bar, Grid, Options, Result
from nodescope.archive.reader import Archive

FLUSH_S, SLACK_S = 0.3, 0.25
FAST = ("--flush", "300ms", "--segment", "1s", "--core-interval", "50ms")
SEED = 20240229


def run(options: Options) -> Result:
    bars, grid, figures = _kills(8 if options.quick else 50)
    others = {
        "full disk": _full_disk,
        "wall clock set 1 h forward": _clock_step,
        "stopped (SIGSTOP)": lambda folder: _stopped(folder, 4 if options.quick else 10),
    }
    for name, check in others.items():
        bars.append(_tried(name, check))
    return Result(tuple(bars), (grid,), (), figures)


# -- kill -9 -----------------------------------------------------------------


def _kills(times: int) -> tuple[list[Bar], Grid, dict[str, object]]:
    chance = random.Random(SEED)
    missing: list[float] = []
    met: Counter[str] = Counter()
    unreadable = changed = 0
    sealed: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as name, many_short_processes():
        archive = Path(name) / "run" / "archive"
        archive.parent.mkdir()
        for number in range(times):
            left_open = _open_names(archive)
            process = RecorderProcess(archive, *FAST)
            in_start_up = number % 5 == 4
            if in_start_up:
                time.sleep(chance.uniform(0.0, 1.2))
            else:
                process.wait_for(lambda left=left_open: _records(archive, left), "it records", 60)
                time.sleep(chance.uniform(0.0, 2.5))
            process.kill()
            killed_ns = time.time_ns()
            process.wait()
            met["start-up" if in_start_up else _phase(archive)] += 1
            changed += sum(_digest(archive / path) != digest for path, digest in sealed.items())
            if not (archive / "archive.json").exists():
                continue  # killed before it had made one, which is no archive yet
            try:
                listing = Archive.open(archive).listing()
                last = max((each.wall_to_ns for each in listing.segments), default=None)
                for segment in listing.segments:
                    segment.read("samples")
                unreadable += bool(listing.damaged)
            except Exception as error:  # noqa: BLE001 - whatever it is, the archive did not open
                print(f"kill {number}: {error!r}")
                unreadable += 1
                continue
            if not in_start_up and last is not None:
                missing.append((killed_ns - last) / 1e9)
            sealed = _digests(archive)
        code = RecorderProcess(archive, "--duration", "1s").wait(60)
        left = len(_open_names(archive))
        shown = status(archive)
    worst = max(missing, default=float("nan"))
    within = FLUSH_S + SLACK_S
    bars = [
        Bar(f"archives that open after {times} kills", "all", f"{times - unreadable}",
            unreadable == 0),
        Bar("missing at worst", f"≤ {FLUSH_S * 1e3:.0f} ms flush + {SLACK_S * 1e3:.0f} ms slack",
            f"{worst * 1e3:.0f} ms (median {np.median(missing) * 1e3:.0f} ms)", worst <= within),
        Bar("sealed files that changed", "0", f"{changed} of {len(sealed)}", changed == 0),
        Bar("recovered by the next recorder", "nothing left open",
            f"{left} left open, exit code {code}", code == 0 and not left),
    ]  # fmt: skip
    rows = tuple((phase, str(count)) for phase, count in met.most_common())
    grid = Grid(
        f"What the kills met; {shown['samples']:,} samples, {shown['segments']} segments",
        ("", "kills"),
        rows,
    )
    figures: dict[str, object] = {"missing_s": [round(each, 4) for each in sorted(missing)]}
    return bars, grid, figures


def _records(archive: Path, left_open: set[str]) -> bool:
    """Whether a segment is open, with a flush in it, that no recorder before had opened."""
    found = {path.parent.name for path in archive.glob("open/[0-9]*/heartbeats.arrows")}
    return bool(found - left_open)


def _open_names(archive: Path) -> set[str]:
    return {path.name for path in archive.glob("open/[0-9]*")}


def _phase(archive: Path) -> str:
    """Where in its work a recorder was killed, by what it left."""
    if list(archive.glob("segments/.*")):
        return "building a sealed segment"
    if list(archive.glob("open/.*")):
        return "making or removing an open segment"
    names = _open_names(archive)
    if not names:
        return "between two segments"
    if names & {path.name for path in (archive / "segments").glob("[0-9]*")}:
        return "after sealing, before removing the open segment"
    return "with an open segment"


def _digest(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""


def _digests(archive: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(archive)): _digest(path) for path in archive.glob("segments/[0-9]*/*")
    }


# -- the others --------------------------------------------------------------


def _tried(name: str, check: Callable[[Path], tuple[bool, str, str]]) -> Bar:
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as folder:
        try:
            passed, limit, measured = check(Path(folder))
        except AssertionError as error:
            passed, limit, measured = False, "", f"{error}"
    return Bar(name, limit, measured, passed)


def _full_disk(folder: Path) -> tuple[bool, str, str]:
    """A tmpfs of 3 MB filled for 3 s: a pause with a gap, nothing sealed lost, then on again."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], check=True)
    archive = disk / "archive"
    options = ("--flush", "200ms", "--segment", "600ms", "--core-interval", "10ms")
    try:
        with recording(archive, *options) as process:
            process.wait_for(
                lambda: len(list(archive.glob("segments/[0-9]*"))) >= 2, "two segments are sealed"
            )
            fill = disk / "fill"
            fill_up(fill)
            filled = time.monotonic()
            process.wait_for(lambda: "paused" in said(archive), "it pauses")
            sealed = _digests(archive)
            time.sleep(3)
            fill.unlink()
            full_s = time.monotonic() - filled
            process.wait_for(lambda: gap_reasons(archive, "all"), "it records again")
            time.sleep(1)
        lost = sum(_digest(archive / path) != digest for path, digest in sealed.items())
        shown = status(archive)
        damaged = len(Archive.open(archive).listing().damaged)
    finally:
        # said_file() lies on the disk's parent, so nothing keeps it busy.
        subprocess.run(["umount", disk], check=True)
    gaps = [gap for gap in shown["gaps"] if gap["source"] == "all"]
    gap_s = sum(gap["to_ns"] - gap["from_ns"] for gap in gaps) / 1e9
    passed = not lost and not damaged and bool(sealed) and 2 < gap_s < full_s + 2
    measured = f"full {full_s:.1f} s, gap {gap_s:.1f} s, {lost} of {len(sealed)} sealed files lost"
    return passed, "a gap, nothing sealed lost, resumes", measured


def _clock_step(folder: Path) -> tuple[bool, str, str]:
    library = find_faketime()
    if library is None:
        return False, "", "libfaketime is not installed"
    stamp, archive = folder / "faketime", folder / "run" / "archive"
    archive.parent.mkdir()
    stamp.write_text("+0")
    environment = {
        "LD_PRELOAD": library,
        "FAKETIME_TIMESTAMP_FILE": str(stamp),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    with recording(archive, "--flush", "300ms", **environment) as process:
        time.sleep(1)
        before = time.time_ns()
        stamp.write_text("+3600")
        process.wait_for(lambda: "clock_step" in event_kinds(archive), "a clock step")
        time.sleep(1)
        after = time.time_ns()
    (segment,) = Archive.open(archive).segments()
    walls = segment.wall_ns(column(segment, "cores", "time_ns"))
    steps = np.diff(np.unique(walls)) / 1e9
    both = walls.min() < before and after + 3598e9 < walls.max() < after + 3602e9
    passed = bool(both) and event_kinds(archive).count("clock_step") == 1
    passed &= not status(archive)["gaps"]
    return passed, "one event, no gap, both sides at their time", f"a step of {steps.max():.0f} s"


def _stopped(folder: Path, seconds: int) -> tuple[bool, str, str]:
    archive = folder / "run" / "archive"
    archive.parent.mkdir()
    with recording(archive, "--flush", "500ms") as process:
        time.sleep(1)
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)
        process.wait_for(lambda: status(archive)["gaps"], "a gap is recorded")
    shown = status(archive)
    gaps = [gap for gap in shown["gaps"] if "not run for" in gap["reason"]]
    gap_s = sum(gap["to_ns"] - gap["from_ns"] for gap in gaps) / 1e9
    passed = len(gaps) == 1 and seconds - 1 < gap_s < seconds + 3 and shown["lost"] == 0
    measured = f"stopped {seconds} s, gap {gap_s:.1f} s in {gaps[0]['source'] if gaps else '–'}"
    return passed, "one gap of that length, no sample lost", f"{measured}, {shown['lost']} lost"
