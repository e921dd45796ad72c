"""Ten minutes of `nodescope record` at 97 Hz while many short processes keep every core busy:
its CPU, memory, lost samples and bytes per sample; `perf record -F 97 -g -a` on the same load.

Recorded are samples and cores alone (`--without all`); what the observers of the node add is
`node_cost`. CPU is user and system time of the recorder and its children by wait4(2), over
the wall time from start to end: start-up, naming of functions, sealing and
ending are in it. Steady state, beside it, leaves the first 30 s out. Bytes
are all files of the archive's folder, descriptions included.

How it could be fooled, and what is shown against it:

- By sampling less: the rate in every heartbeat must be the one asked for, and
  the samples must be as many as 97 per second that a core was not idle.
- By a load that does not run: the forks per second of the load are shown, with
  no recorder and with each, in turns, because a virtual machine drifts.
- By work the kernel does in interrupts, which no process time shows: the
  throughput of the load with and without a recorder does.
- By time the hypervisor took: the share stolen during the run is shown.
- By allocated blocks: small files take whole blocks; both figures are shown.
- By doing less than the peer, or the peer less: `perf record` keeps addresses
  and names nothing; what `perf script` takes to name them is shown apart.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.recorder_process import NODESCOPE, column, recording, status

from benchmarks.load import many_short_processes, read_forks
from benchmarks.measured import (
    Measured,
    compiled_modules,
    folder_bytes,
    read_busy_seconds,
    run_measured,
    slope_per_second,
)
from benchmarks.results import Bar, Grid, Options, Result
from nodescope.archive.reader import Archive

HZ = 97
CPU_BAR, MEMORY_BAR, BYTES_BAR = 0.006, 80e6, 3.0
ALONE = "samples and cores alone"  # no observer of the node: those are `node_cost`
FLAT_BAR = 1e6  # bytes per five minutes
WARM_UP_S = 5.0  # of the load, before anything is measured
QUOTED = (
    "gProfiler was not run here. Quoted, not measured in this run: its agent (perf only) "
    "took 3.0 % of a core and 215 MB at 97 Hz on two cores (1.8 % and 146 MB at 11 Hz)."
)


@dataclass(frozen=True, slots=True)
class Run:
    """A profiler's run under the load."""

    name: str
    measured: Measured
    samples: int | None
    bytes: int
    allocated_bytes: int
    forks_per_s: float
    busy_s: float
    stolen_s: float

    @property
    def bytes_per_sample(self) -> float | None:
        return self.bytes / self.samples if self.samples else None

    def row(self, after_s: float) -> tuple[str, ...]:
        per_sample = self.bytes_per_sample
        return (
            self.name,
            f"{self.measured.wall_s:.0f} s",
            f"{self.measured.cpu_ratio:.3%}",
            f"{self.measured.steady_ratio(after_s):.3%}",
            f"{self.measured.peak_bytes / 1e6:.1f} MB",
            "–" if self.samples is None else f"{self.samples:,}",
            f"{self.bytes / 1e6:.2f} MB",
            "–" if per_sample is None else f"{per_sample:.2f}",
            f"{self.forks_per_s:.0f}",
            f"{self.stolen_s / self.measured.wall_s:.2%}",
        )


HEAD = (
    "", "ran", "CPU of one core", "steady", "memory, peak", "samples", "on disk",
    "bytes per sample", "forks/s meanwhile", "stolen",
)  # fmt: skip


def run(options: Options) -> Result:
    seconds, peer_seconds, slice_seconds = (20, 10, 4) if options.quick else (600, 60, 5)
    after = 8.0 if options.quick else 30.0
    flat_after = 10.0 if options.quick else 120.0
    with tempfile.TemporaryDirectory(prefix="nodescope-bench-") as name:
        folder = Path(name)
        warm = ours_command(folder / "first", 1)  # so that modules are compiled
        with compiled_modules(warm), many_short_processes():
            time.sleep(WARM_UP_S)
            ours = _run_nodescope(folder / "archive", seconds)
            peers = _run_peers(folder, peer_seconds, options.peers)
        bars, figures = _judge(ours, folder / "archive", flat_after)
        rows = [each.row(min(after, 5.0) if each is not ours else after) for each in (ours, *peers)]
        naming = _perf_script_seconds(folder / "perf" / "perf.data")
        throughput = _throughput(folder, slice_seconds, rounds=1 if options.quick else 3)
    notes = [
        f"`{' '.join(ours_command(Path('DIR'), seconds)[-8:])}`; peers run {peer_seconds} s each.",
        f"Steady state leaves the first {after:.0f} s out (peers: {min(after, 5):.0f} s).",
    ]
    if naming is not None:
        notes.append(
            f"`perf record` names nothing: `perf script` of its file took {naming:.1f} s of CPU "
            "more. Nodescope's figure includes naming."
        )
    if "gprofiler" not in options.peers:
        notes.append(QUOTED)
    if shutil.which("perf") is None:
        notes.append("perf is not installed: no peer ran.")
    figures["throughput"] = throughput
    grids = (
        Grid("On the same load", HEAD, tuple(rows)),
        _throughput_grid(throughput, slice_seconds),
    )
    return Result(bars, grids, tuple(notes), figures)


def ours_command(archive: Path, seconds: int) -> list[str]:
    # The recorder as such: what the observers of the node add is `node_cost`.
    command = [*NODESCOPE, "record", "--archive", str(archive), "--duration", f"{seconds}s"]
    return [*command, "--without", "all"]


def _under_load(
    name: str, command: list[str], output: Path, count_samples: Callable[[Measured], int | None]
) -> Run:
    forks, (busy, stolen) = read_forks(), read_busy_seconds()
    measured = run_measured(command)
    forks_after, (busy_after, stolen_after) = read_forks(), read_busy_seconds()
    if measured.returncode != 0:
        raise SystemExit(f"{name} failed: {measured.stderr[-2000:]}")
    size, allocated = folder_bytes(output)
    return Run(
        name,
        measured,
        count_samples(measured),
        size,
        allocated,
        (forks_after - forks) / measured.wall_s,
        busy_after - busy,
        stolen_after - stolen,
    )


def _run_nodescope(archive: Path, seconds: int) -> Run:
    return _under_load(
        "nodescope record --without all",
        ours_command(archive, seconds),
        archive,
        lambda _: int(status(archive)["samples"]),
    )


def _run_peers(folder: Path, seconds: int, others: dict[str, str]) -> list[Run]:
    runs = []
    if shutil.which("perf"):
        (folder / "perf").mkdir()
        command = ["perf", "record", "-F", str(HZ), "-g", "-a"]
        command += ["-o", str(folder / "perf" / "perf.data"), "--", "sleep", str(seconds)]
        runs.append(_under_load("perf record", command, folder / "perf", _count_perf_samples))
    for name, text in others.items():
        output = folder / f"peer-{name}"
        output.mkdir()
        filled = text.replace("{seconds}", str(seconds)).replace("{folder}", str(output))
        runs.append(_under_load(name, shlex.split(filled), output, lambda _: None))
    return runs


def _count_perf_samples(measured: Measured) -> int | None:
    found = re.search(r"\((\d+) samples\)", measured.stderr)
    return int(found[1]) if found else None


def _perf_script_seconds(data: Path) -> float | None:
    if not data.exists():
        return None
    return run_measured(["perf", "script", "-i", str(data), "--no-inline"]).cpu_s


def _judge(
    ours: Run, archive: Path, flat_after_s: float
) -> tuple[tuple[Bar, ...], dict[str, object]]:
    shown = status(archive)
    rates = sorted(
        {
            int(rate)
            for segment in Archive.open(archive).segments()
            for rate in column(segment, "heartbeats", "frequency_hz")
        }
    )
    samples = ours.samples or 0
    # Only while it recorded: before its first sample an interpreter starts.
    recorded_s = (shown["to_ns"] - shown["from_ns"]) / 1e9
    expected = HZ * ours.busy_s * recorded_s / ours.measured.wall_s
    late = [each for each in ours.measured.readings if each.at_s >= flat_after_s]
    per_second = slope_per_second(
        [each.at_s for each in late], [float(each.rss_bytes) for each in late]
    )
    growth = per_second * 300
    measured = ours.measured
    per_sample = ours.bytes_per_sample or float("inf")
    bars = (
        Bar(
            f"CPU of one core: {ALONE}, start-up and naming included", "≤ 0.6 %",
            f"{measured.cpu_ratio:.3%}", measured.cpu_ratio <= CPU_BAR,
        ),
        Bar("memory, peak", "≤ 80 MB", f"{measured.peak_bytes / 1e6:.1f} MB",
            measured.peak_bytes <= MEMORY_BAR),
        Bar(
            f"memory, growth after {flat_after_s:.0f} s", "flat: < 1 MB in 5 minutes",
            f"{growth / 1e6:+.2f} MB in 5 minutes", growth < FLAT_BAR,
        ),
        Bar("lost samples", "0", str(shown["lost"]), shown["lost"] == 0),
        Bar("sampling rate kept", "97 Hz", f"{', '.join(map(str, rates))} Hz", rates == [HZ]),
        Bar(
            "samples, of 97 per busy core and second", "≥ 95 %",
            f"{samples / expected:.1%}", samples >= 0.95 * expected,
        ),
        Bar(
            f"bytes per sample: {ALONE}, all files included", "≤ 3",
            f"{per_sample:.2f} ({ours.allocated_bytes / max(1, samples):.2f} in allocated blocks)",
            per_sample <= BYTES_BAR,
        ),
    )  # fmt: skip
    figures: dict[str, object] = {
        "cpu_s": measured.cpu_s,
        "wall_s": measured.wall_s,
        "samples": samples,
        "bytes": ours.bytes,
        "says_of_itself": shown["recorder"],
        "tables": shown["tables"],
        # One in ten is enough to draw it.
        "rss": [
            (round(each.at_s), each.rss_bytes, each.own_bytes) for each in measured.readings[::10]
        ],
    }
    return bars, figures


# -- what it takes from the load ---------------------------------------------


@contextmanager
def _perf_recording(folder: Path) -> Iterator[None]:
    command = ["perf", "record", "-F", str(HZ), "-g", "-a", "-o", str(folder / "slice.data")]
    with subprocess.Popen(
        [*command, "--", "sleep", "3600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            time.sleep(2)
            yield
            if process.poll() is not None:
                raise SystemExit(f"perf record ended with exit code {process.returncode}")
        finally:
            process.terminate()


def _throughput(folder: Path, seconds: int, rounds: int) -> dict[str, list[float]]:
    """Forks per second of the load with no recorder, with ours, with perf, in turns."""
    found: dict[str, list[float]] = {"none": [], "nodescope record": []}
    if shutil.which("perf"):
        found["perf record"] = []
    for turn in range(rounds):
        for name, values in found.items():
            with many_short_processes():
                time.sleep(WARM_UP_S)
                if name == "none":
                    values.append(_forks_per_second(seconds))
                elif name == "perf record":
                    with _perf_recording(folder):
                        values.append(_forks_per_second(seconds))
                else:
                    with recording(folder / f"turn{turn}" / "archive", "--without", "all"):
                        values.append(_forks_per_second(seconds))
    return found


def _forks_per_second(seconds: int) -> float:
    started, forks = time.monotonic(), read_forks()
    time.sleep(seconds)
    return (read_forks() - forks) / (time.monotonic() - started)


def _throughput_grid(throughput: dict[str, list[float]], seconds: int) -> Grid:
    mean = {name: sum(values) / len(values) for name, values in throughput.items()}
    rows = tuple(
        (
            name,
            f"{mean[name]:.1f}",
            f"{min(values):.1f} to {max(values):.1f}",
            f"{mean[name] / mean['none'] - 1:+.2%}",
        )
        for name, values in throughput.items()
    )
    turns = len(throughput["none"])
    return Grid(
        f"Throughput of the load, {turns} × {seconds} s each, in turns",
        ("recorder", "forks/s", "from turn to turn", "against none"),
        rows,
    )
