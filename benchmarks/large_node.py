"""Ring data of a 96-core node, 9,312 samples a second for four minutes, through the recorder's own
loop as fast as it goes: CPU per second of data, sealing included; at both ends of diversity.

The tame end is what this machine's rings held: some ten thousand distinct stacks of functions
in two minutes. At the diverse end nine samples of ten are those of a program with 390,000
(`diversity.py`): more than the recorder's budget allows, so that it folds the rarest. The same
data is recorded once more without a budget: leaf, root, process, core, mode and time of every
sample must be the same. `tame walks` is that program with 10,000 stacks, whose threads are on
any of them: 25 times as many rows of `profile` as stacks.

A large node is not at hand, so its rings are made of what this machine's held
(`synthetic.py` says exactly what is real and what is not), written to a file,
and fed, a second at a time, to `nodescope.recorder.session.record` in a process
of its own, while nothing else of ours runs. Three things there are replaced:
where the rings' bytes come from (that file), the clock (it stands at the second
being fed), and `/proc/stat` and the list of cores (96 of them). The observers of
the node are left out: they read no rings. All else is what `nodescope record` runs:
splitting, looking ahead, decoding, attributing, naming, interning, appending,
flushing, sealing every two minutes, heartbeats, its budget. That budget may find it
too dear; the data stays what it is then, and the result says so.

CPU is all of that process from its start to its end, without what it spent
reading the file. What a real node adds and this does not: copying the bytes out
of 96 rings (about what reading them from the file takes, which is shown), some
wake-ups a second, caches that others use, and what the kernel does in its
interrupts.

How it could be fooled: by easy data (chains are as long, and as often new, as
the figures say; the same chains over and over would cost next to nothing), by
names that do not resolve (the share that does is shown), by processes that are
not there (a process that vanished is asked of `/proc` once and costs little, so
those sampled are alive, or die in the data itself), or by losing data (the
samples in the archive must be as many as were fed). It can also look too dear:
two virtual cores may be one real one, and then what others run meanwhile slows
us (a fifth more CPU was seen); how much they ran is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from benchmarks.measured import read_busy_seconds
from benchmarks.results import Bar, Grid, Options, Result

if TYPE_CHECKING:
    from benchmarks.synthetic import Node

CPUS, HZ = 96, 97
TAME_BAR, DIVERSE_BAR = 0.025, 0.06


@dataclass(frozen=True, slots=True)
class _Fed:
    """Ring data in a file, and what it is."""

    rings: Path
    seconds: int
    started_ns: int
    cgroup: bool
    samples: int
    shape: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of the recorder: its archive, and what it cost and holds."""

    archive: Path
    found: dict[str, Any]
    fed: _Fed

    @property
    def cpu_ratio(self) -> float:
        used: float = self.found["cpu_s"] - self.found["feeding_s"]
        return used / self.fed.seconds

    @property
    def is_complete(self) -> bool:
        """Whether every sample is in the archive."""
        return bool(self.found["samples"] == self.fed.samples and not self.found["lost"])


def run(options: Options) -> Result:
    # Imported here: the process that is measured runs this module, too, and need not hold it.
    from benchmarks.archive_look import describe_samples
    from benchmarks.diversity import DIVERSE, TAME
    from benchmarks.diversity import WHAT_IS_SYNTHETIC as WALKS
    from benchmarks.synthetic import WHAT_IS_SYNTHETIC, captured
    from benchmarks.walkers import walking

    seconds = 20 if options.quick else 240
    with (
        tempfile.TemporaryDirectory(prefix="nodescope-bench-") as name,
        captured(6 if options.quick else 20, cpus=CPUS, frequency_hz=HZ) as node,
    ):
        folder = Path(name)
        runs = {"tame": _measure(folder / "tame", _feed(folder, node, seconds))}
        for label, stacks in (("tame walks", TAME), ("diverse", DIVERSE)):
            with walking(folder, stacks, node.segment_samples, cgroup=node.cgroup) as walkers:
                fed = _feed(folder, node.diversify(walkers), seconds)
                runs[label] = _measure(folder / label, fed)
                if label == "diverse":
                    runs["diverse, all whole"] = _measure(folder / "whole", fed, whole=True)
        same = describe_samples(runs["diverse"].archive) == describe_samples(
            runs["diverse, all whole"].archive
        )
    return _judge(runs, same, (*WHAT_IS_SYNTHETIC, WALKS))


def _feed(folder: Path, node: Node, seconds: int) -> _Fed:
    """Write what the rings of a node held; over what another one's held, if there is such."""
    started_ns, fed, rings = time.monotonic_ns(), 0, folder / "rings"
    with rings.open("wb") as file:
        for second in range(seconds):
            held, samples = node.second(started_ns, second)
            fed += samples
            file.write(struct.pack(f"<{CPUS}I", *map(len, held)))
            file.writelines(held)
    return _Fed(rings, seconds, started_ns, node.cgroup, fed, node.describe())


def _measure(folder: Path, fed: _Fed, *, whole: bool = False) -> _Run:
    """Run the recorder on ring data; with `whole` its budget is boundless."""
    from benchmarks.archive_look import look_into

    folder.mkdir()
    command = [sys.executable, "-m", "benchmarks.large_node", str(folder / "archive")]
    command += [str(fed.seconds), str(fed.started_ns), str(int(fed.cgroup)), str(int(whole))]
    busy, began = read_busy_seconds()[0], time.monotonic()
    with fed.rings.open("rb") as file:
        output = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, check=True).stdout
    busy, took = read_busy_seconds()[0] - busy, time.monotonic() - began
    found = json.loads(output) | look_into(folder / "archive")
    found["others_ratio"] = max(0.0, busy - found["cpu_s"]) / took
    return _Run(folder / "archive", found, fed)


def _judge(runs: dict[str, _Run], same: bool, notes: tuple[str, ...]) -> Result:
    tame, diverse = runs["tame"], runs["diverse"]
    folded = diverse.found["folded"] / max(1, diverse.found["samples"])
    bars = [
        _cpu_bar("tame", tame, TAME_BAR),
        _cpu_bar("diverse, with folding", diverse, DIVERSE_BAR),
        Bar("diverse: samples with a folded stack", "", f"{folded:.1%}"),
        Bar("tame: samples with a folded stack", "0", f"{tame.found['folded']:,}",
            not tame.found["folded"]),
        Bar("diverse: leaf, root, process, core, mode and time of every sample",
            "as without folding", "the same" if same else "not the same", same),
    ]  # fmt: skip
    for label, each in runs.items():
        kept, fed = f"{each.found['samples']:,}", f"all {each.fed.samples:,}"
        bars.append(Bar(f"{label}: samples in the archive", fed, kept, each.is_complete))
        peak = f"{each.found['peak_bytes'] / 1e6:.0f} MB"
        bars.append(Bar(f"{label}: memory, peak", "", peak))
    grids = [
        Grid("The recorder", ("", *runs), tuple(_rows(tuple(runs.values())))),
        *(Grid(f"The data, {name}", ("", ""), tuple(runs[name].fed.shape.items()))
          for name in ("tame", "diverse")),
    ]  # fmt: skip
    figures = {label: each.found for label, each in runs.items()}
    return Result(tuple(bars), tuple(grids), notes, {"found": figures})


def _cpu_bar(label: str, measured: _Run, limit: float) -> Bar:
    ratio = measured.cpu_ratio
    name = f"{label}: CPU of one core, everything included"
    return Bar(name, f"≤ {limit:.1%}", f"{ratio:.2%}", ratio <= limit)


def _rows(runs: tuple[_Run, ...]) -> Iterator[tuple[str, ...]]:
    """Each figure, of all runs."""

    def row(name: str, show: Callable[[dict[str, Any], _Fed], str]) -> tuple[str, ...]:
        return name, *(show(each.found, each.fed) for each in runs)

    yield row("samples per second", lambda found, fed: f"{fed.samples / fed.seconds:,.0f}")
    yield ("CPU, everything", *(f"{each.cpu_ratio:.2%} of one core" for each in runs))
    yield row("of which starting up", lambda found, fed: f"{found['start_up_s']:.2f} s")
    yield row(
        "of which sealing",
        lambda found, fed: f"{found['sealing_s']:.2f} s in {found['seals']} segments",
    )
    yield row("reading the file, not counted", lambda found, fed: f"{found['feeding_s']:.2f} s")
    yield row(
        "others on this machine meanwhile",
        lambda found, fed: f"{found['others_ratio']:.0%} of one core",
    )
    yield row("memory, peak", lambda found, fed: f"{found['peak_bytes'] / 1e6:.1f} MB")
    yield row("bytes per sample", lambda found, fed: f"{found['bytes_per_sample']:.2f}")
    yield row("frames per sample, in the archive", lambda found, fed: f"{found['depth']:.1f}")
    yield row("frames with a name", lambda found, fed: f"{found['named_ratio']:.1%}")
    yield row(
        "distinct stacks by comm and mode in a segment",
        lambda found, fed: f"{found['profile_rows']:,}",
    )
    yield row(
        "samples with a folded stack",
        lambda found, fed: f"{found['folded'] / max(1, found['samples']):.1%}",
    )
    yield row("lowered its rate", lambda found, fed: "yes" if found["lowered"] else "no")


# -- the process that is measured --------------------------------------------


class _Feed:
    """Takes the place of the rings and of the clock."""

    def __init__(self, seconds: int, started_ns: int, cgroup: bool) -> None:
        self.seconds, self.cgroup = seconds, cgroup
        self.now_ns = self.started_ns = started_ns
        self.wall_offset_ns = time.time_ns() - time.monotonic_ns()
        self.second = 0
        self.feeding_ns = 0

    def next(self) -> list[bytes]:
        """The bytes of the next second, per core; empty at the end."""
        before = time.process_time_ns()
        head = sys.stdin.buffer.read(4 * CPUS)
        rings = (
            [sys.stdin.buffer.read(size) for size in struct.unpack(f"<{CPUS}I", head)]
            if head
            else []
        )
        self.feeding_ns += time.process_time_ns() - before
        # At the end of the file it is the end of time: the recorder's duration is over.
        self.second = self.second + 1 if rings else max(self.second, self.seconds)
        self.now_ns = self.started_ns + self.second * 1_000_000_000
        return rings


def _replay(archive: Path, feed: _Feed, *, whole: bool) -> dict[str, Any]:
    """Run the recorder on the feed; what it cost. With `whole` its budget is boundless."""
    from nodescope.archive import writer
    from nodescope.archive.seal import seal
    from nodescope.errors import SourceError
    from nodescope.perf.decode import Chunk, split
    from nodescope.perf.event import Sampler
    from nodescope.recorder import session
    from nodescope.recorder.options import RecorderOptions
    from nodescope.recorder.samples import core_times, intake
    from nodescope.recorder.samples.rings import Followed
    from nodescope.sources.node.proc_stat import read_cores

    readable, other = os.pipe()
    os.write(other, b"\0")  # always ready: the loop never sleeps

    class Clock:
        def monotonic_ns(self) -> int:
            return feed.now_ns

        def wall_ns(self) -> int:
            return feed.now_ns + feed.wall_offset_ns

    class Sampling:
        def __init__(self, frequency_hz: int, ring_bytes: int, first_cpu: int) -> None:
            del ring_bytes, first_cpu
            self.sampler = Sampler(frequency_hz=frequency_hz, cgroup=feed.cgroup)
            self.cpus: list[int] = []
            self.failed: dict[int, SourceError] = {}
            self.counts_lost = True

        def descriptors(self) -> dict[int, int]:
            return {readable: 0}

        def follow(self, lives: Mapping[int, int]) -> tuple[Followed, list[Chunk]]:
            added = tuple(cpu for cpu in lives if cpu not in self.cpus)
            self.cpus = list(lives)
            return Followed(added), []

        def drain(self) -> list[Chunk]:
            return [split(cpu, data) for cpu, data in enumerate(feed.next()) if data]

        def set_frequency(self, frequency_hz: int) -> list[Chunk]:
            del frequency_hz  # the data stays what it is; that it was lowered is in `events`
            return []

        def take_lost(self, *, ask_all: bool = False) -> dict[int, int]:
            del ask_all
            return {}

        def close(self) -> None:
            pass

    root = archive.parent / "node"
    root.mkdir()
    lines = [
        f"cpu{cpu} 184467 2310 {99000 + cpu} 8123456 991 0 3300 17 0 0\n" for cpu in range(CPUS)
    ]
    (root / "stat").write_text("cpu  1 2 3 4 5 6 7 8 9 10\n" + "".join(lines) + "intr 0\n")
    sealing_ns = seals = 0

    def timed_seal(directory: Path, archive_root: Path) -> Any:
        nonlocal sealing_ns, seals
        before = time.process_time_ns()
        try:
            return seal(directory, archive_root)
        finally:
            sealing_ns += time.process_time_ns() - before
            seals += 1

    start_up_ns = 0

    class Beginning(Sampling):
        """Notes when there is something to do for the first time."""

        def drain(self) -> list[Chunk]:
            nonlocal start_up_ns
            start_up_ns = start_up_ns or time.process_time_ns()
            return super().drain()

    options = RecorderOptions(archive, duration_ns=feed.seconds * 1_000_000_000, without=("all",))
    if whole:
        options = replace(options, budget_cpu_ratio=1000.0, budget_memory_bytes=1 << 50)
    with (
        patch.object(intake, "Sampling", Beginning),
        patch.object(intake, "read_core_lives", lambda sys: dict.fromkeys(range(CPUS), 0)),
        patch.object(core_times, "read_cores", lambda proc: read_cores(root)),
        patch.object(session, "SystemClock", Clock),
        patch.object(writer, "seal", timed_seal),
    ):
        session.record(options, report=lambda message: print(message, file=sys.stderr))
    return {
        "cpu_s": time.process_time_ns() / 1e9,
        "feeding_s": feed.feeding_ns / 1e9,
        "start_up_s": start_up_ns / 1e9,
        "sealing_s": sealing_ns / 1e9,
        "seals": seals,
        "peak_bytes": _read_peak_bytes(),
    }


def _read_peak_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _main() -> None:
    parser = argparse.ArgumentParser(description="the process that large_node measures")
    parser.add_argument("archive", type=Path)
    for name in ("seconds", "started_ns", "cgroup", "whole"):
        parser.add_argument(name, type=int)
    args = parser.parse_args()
    feed = _Feed(args.seconds, args.started_ns, bool(args.cgroup))
    print(json.dumps(_replay(args.archive, feed, whole=bool(args.whole))))


if __name__ == "__main__":
    _main()
