"""More than 10,000 lines a second written to the kernel's log while the recorder runs, and again
while one recorder ends and another begins: what it costs, and whether each line is accounted for.

The whole recorder runs, with everything it observes. One process writes numbered lines of
70 characters to `/dev/kmsg` at an even rate, at a level that no console prints. The kernel
lets each open file write ten lines in five seconds (`printk_devkmsg`); that limit is
lifted for the time of the flood and put back. CPU is the recorder's by `/proc/PID/stat`,
in ticks of 10 ms, between the first and the last line of the first flood, and for as
long before it. Every record of the kernel's log has a number: those between a line
written before all and one written after all are either in the archive, or in the
`lost` of its gaps.

How it could be fooled: by lines that others write (they are counted as well, and told),
by lines written so fast that none is read (the number recorded is told), and by a flood
that is shorter than the recorder's interval of a second (it lasts ten).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.kernel_log import flood, ring_bytes, without_limit, write_line
from tests.recorder_process import RecorderProcess, recording

from benchmarks.measured import read_tree
from benchmarks.results import Bar, Grid, Options, Result
from nodescope.archive.reader import Archive

RATE = 12_000
RATE_BAR, CPU_BAR = 10_000, 0.05


@dataclass(frozen=True, slots=True)
class _Flood:
    written: int
    seconds: float
    cpu_ratio: float = float("nan")

    @property
    def rate(self) -> float:
        return self.written / self.seconds


@dataclass(frozen=True, slots=True)
class _Archived:
    """What the archive has between the first mark and the last."""

    numbers: int  # of records, by the kernel's sequence
    recorded: int
    lost: int
    gaps: int
    duplicates: int


def run(options: Options) -> Result:
    seconds = 4.0 if options.quick else 10.0
    tag = f"nodescope-flood-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as folder, without_limit():
        archive = Path(folder, "run", "archive")
        archive.parent.mkdir()
        first = f"{tag} first"
        last = f"{tag} last"
        with recording(archive) as recorder:
            _mark(first, archive, recorder)
            before = _cpu(recorder, lambda: time.sleep(seconds))
            steady = _flooded(recorder, tag, seconds)
            _mark(f"{tag} between", archive, recorder)
        restarted = _restarted(archive, tag, seconds, last)
        found = _read(archive, first, last)
    written = steady.written + restarted.written
    missing = found.numbers - found.recorded - found.lost
    slowest = min(steady.rate, restarted.rate)
    bars = (
        Bar("lines written, a second", f"≥ {RATE_BAR:,}", f"{slowest:,.0f}", slowest >= RATE_BAR),
        Bar("the recorder in the flood, of one core", f"≤ {CPU_BAR:.0%}",
            f"{steady.cpu_ratio:.2%}", steady.cpu_ratio <= CPU_BAR),
        Bar("the recorder before it, of one core", "", f"{before:.2%}"),
        Bar("records neither in the archive nor counted as lost", "0", str(missing),
            missing == 0 and found.numbers >= written),
        Bar("records told twice, a restart in the flood included", "0", str(found.duplicates),
            found.duplicates == 0),
    )  # fmt: skip
    grid = Grid(
        "",
        ("written", "numbered by the kernel", "recorded", "counted as lost", "in gaps"),
        (tuple(f"{number:,}" for number in (
            written, found.numbers, found.recorded, found.lost, found.gaps)),),
    )  # fmt: skip
    notes = (
        f"First {steady.written:,} lines in {steady.seconds:.1f} s.",
        f"Then {restarted.written:,} in {restarted.seconds:.1f} s, with a restart in the middle.",
        f"The kernel's ring has {ring_bytes() >> 10} KiB: what is not read in time is overwritten.",
        f"Others wrote {found.numbers - written - 3:,} lines meanwhile.",
    )
    return Result(bars, (grid,), notes)


def _mark(line: str, archive: Path, recorder: RecorderProcess) -> None:
    """Write a line and wait until the archive tells it: all before it was read, too."""
    write_line(line)
    recorder.wait_for(lambda: _has(archive, line), f"{line} is recorded", 180)


def _has(archive: Path, line: str) -> bool:
    time.sleep(0.5)  # looking must not be what is measured
    return any(
        line in segment.read("kernel_log", ["text"]).column("text").to_pylist()
        for segment in reversed(Archive.open(archive).segments())
    )


def _cpu(recorder: subprocess.Popen[bytes], during: Callable[[], object]) -> float:
    """Of one core, while something goes on."""
    started, before = time.monotonic(), read_tree(recorder.pid, 0)
    during()
    after, passed = read_tree(recorder.pid, 0), time.monotonic() - started
    if before is None or after is None:
        raise SystemExit("the recorder ended")
    return (after.cpu_s - before.cpu_s) / passed


def _flooded(recorder: subprocess.Popen[bytes], tag: str, seconds: float) -> _Flood:
    with flood(tag, RATE, seconds) as process:
        ratio = _cpu(recorder, process.wait)
        return _result(process, ratio)


def _restarted(archive: Path, tag: str, seconds: float, last: str) -> _Flood:
    """A flood in which one recorder ends and the next begins."""
    with flood(tag, RATE, 2 * seconds) as process:
        with recording(archive):
            time.sleep(seconds / 2)
        with recording(archive) as second:
            process.wait()
            _mark(last, archive, second)
        return _result(process)


def _result(process: subprocess.Popen[str], cpu_ratio: float = float("nan")) -> _Flood:
    assert process.stdout is not None
    written, seconds = process.stdout.read().split()
    return _Flood(int(written), float(seconds), cpu_ratio)


def _read(archive: Path, first: str, last: str) -> _Archived:
    sequences: list[int] = []
    begin = end = begin_ns = 0
    lost: list[int] = []
    for segment in Archive.open(archive).segments():
        lines = segment.read("kernel_log", ["sequence", "time_ns", "text"]).to_pylist()
        sequences += [line["sequence"] for line in lines]
        for line in lines:
            if line["text"] == first:
                begin, begin_ns = line["sequence"], line["time_ns"]
            elif line["text"] == last:
                end = line["sequence"]
        for gap in segment.read("gaps", ["to_ns", "source", "lost"]).to_pylist():
            if gap["source"] == "kernel_log" and gap["to_ns"] > begin_ns and gap["lost"]:
                lost += [gap["lost"]]
    recorded = {sequence for sequence in sequences if begin <= sequence <= end}
    return _Archived(
        end - begin + 1, len(recorded), sum(lost), len(lost), len(sequences) - len(set(sequences))
    )
