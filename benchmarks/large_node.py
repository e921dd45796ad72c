"""Ring data of a 96-core node, 9,312 samples a second for four minutes, through the recorder's own
loop as fast as it goes: CPU per second of data, sealing included.

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.measured import read_busy_seconds
from benchmarks.results import Bar, Grid, Options, Result

CPUS, HZ = 96, 97
CPU_BAR = 0.05


def run(options: Options) -> Result:
    # Imported here: the process that is measured runs this module, too, and need not hold it.
    from benchmarks.synthetic import captured

    seconds = 20 if options.quick else 240
    with (
        tempfile.TemporaryDirectory(prefix="nodescope-bench-") as name,
        captured(6 if options.quick else 20, cpus=CPUS, frequency_hz=HZ) as node,
    ):
        folder = Path(name)
        started_ns = time.monotonic_ns()
        fed = 0
        with (folder / "rings").open("wb") as file:
            for second in range(seconds):
                rings, samples = node.second(started_ns, second)
                fed += samples
                file.write(struct.pack(f"<{CPUS}I", *map(len, rings)))
                file.writelines(rings)
        command = [sys.executable, "-m", "benchmarks.large_node", str(folder / "archive")]
        command += [str(seconds), str(started_ns), str(int(node.cgroup))]
        busy, began = read_busy_seconds()[0], time.monotonic()
        with (folder / "rings").open("rb") as file:
            output = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, check=True).stdout
        busy, took = read_busy_seconds()[0] - busy, time.monotonic() - began
        found = json.loads(output) | _look_into(folder / "archive")
        found["others_ratio"] = max(0.0, busy - found["cpu_s"]) / took
        shape = node.describe()
    return _judge(found, shape, fed, seconds)


def _look_into(archive: Path) -> dict[str, Any]:
    """What the archive holds, and how many of the samples' frames have names."""
    import numpy as np

    from nodescope.archive.reader import Archive
    from nodescope.archive.status import summarise

    reading = Archive.open(archive)
    summary = summarise(reading)
    named = frames = depth_sum = 0
    stacks = []
    for segment in reading.segments():
        names = segment.read("frames", ["name"]).column("name").to_pylist()
        resolved = np.array([not name.startswith(("+0x", "[")) for name in names])
        profile, tree = segment.read("profile"), segment.read("stacks")
        weight = np.zeros(len(tree), np.int64)
        np.add.at(weight, profile.column("stack").to_numpy(), profile.column("samples").to_numpy())
        depth, frame = (tree.column(each).to_numpy() for each in ("depth", "frame"))
        # Going up from the last row, a row's weight is added to its caller's.
        last: list[int] = []
        for row in range(len(depth)):
            del last[depth[row] :]
            last.append(row)
            if weight[row]:
                frames += len(last) * int(weight[row])
                named += int(resolved[frame[last]].sum()) * int(weight[row])
                depth_sum += int(weight[row])
        stacks.append(len(profile))
    return {
        "samples": summary.samples,
        "lost": summary.lost,
        "bytes_per_sample": summary.bytes_per_sample,
        "named_ratio": named / max(1, frames),
        "depth": frames / max(1, depth_sum),
        "profile_rows": max(stacks),
        "lowered": any(
            "rate_lowered" in segment.read("events", ["kind"]).column("kind").to_pylist()
            for segment in reading.segments()
        ),
    }


def _judge(found: dict[str, Any], shape: dict[str, str], fed: int, seconds: int) -> Result:
    used = found["cpu_s"] - found["feeding_s"]
    ratio, steady = used / seconds, (used - found["start_up_s"]) / seconds
    kept = found["samples"] == fed and found["lost"] == 0
    bars = (
        Bar("CPU of one core, everything included", "≤ 5 %", f"{ratio:.2%}", ratio <= CPU_BAR),
        Bar("samples in the archive", f"all {fed:,}", f"{found['samples']:,}", kept),
        Bar("memory, peak", "", f"{found['peak_bytes'] / 1e6:.0f} MB"),
    )
    rows = [
        ("seconds of data", f"{seconds}"),
        ("samples per second", f"{fed / seconds:,.0f}"),
        ("CPU, everything", f"{used:.2f} s = {ratio:.2%} of one core"),
        ("of which starting up", f"{found['start_up_s']:.2f} s; without it {steady:.2%}"),
        ("of which sealing", f"{found['sealing_s']:.2f} s in {found['seals']} segments"),
        ("reading the file, not counted", f"{found['feeding_s']:.2f} s"),
        ("others on this machine meanwhile", f"{found['others_ratio']:.0%} of one core"),
        ("memory, peak", f"{found['peak_bytes'] / 1e6:.1f} MB"),
        ("bytes per sample", f"{found['bytes_per_sample']:.2f}"),
        ("frames per sample, in the archive", f"{found['depth']:.1f}"),
        ("frames with a name", f"{found['named_ratio']:.1%}"),
        ("distinct stacks by comm and mode in a segment", f"{found['profile_rows']:,}"),
        ("lowered its rate", "yes" if found["lowered"] else "no"),
    ]
    grids = (
        Grid("The recorder", ("", ""), tuple(rows)),
        Grid("The data", ("", ""), tuple(shape.items())),
    )
    from benchmarks.synthetic import WHAT_IS_SYNTHETIC

    return Result(bars, grids, WHAT_IS_SYNTHETIC, {"found": found})


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


def _replay(archive: Path, feed: _Feed) -> dict[str, Any]:
    """Run the recorder on the feed; what it cost."""
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
    for name in ("seconds", "started_ns", "cgroup"):
        parser.add_argument(name, type=int)
    args = parser.parse_args()
    feed = _Feed(args.seconds, args.started_ns, bool(args.cgroup))
    print(json.dumps(_replay(args.archive, feed)))


if __name__ == "__main__":
    _main()
