"""A capture of 96 cores for two minutes, brought in, looked at and compared; twelve hours of it;
and the same done by perf, flamescope and FlameGraph.

The data is made by `captures.py`, from a real capture of this machine. Each
import is a process of its own; its CPU is what the kernel accounts to it
(wait4(2)), all threads included, its memory the kernel's high-water mark, read
every 20 ms. Views are measured twice: as a process from start to finish, and
inside one that has everything imported, where the whole command runs (opening
the archive, listing it, reading, summing, the JSON), once unmeasured and then
several times; the median counts, and of several windows the slowest one. Files
were read before and are in the page cache.

How it could be fooled: by easy data (see what is synthetic); by the twelve hours
being the same few segments again (they are: three that differ in callers and
addresses but not in processes, so that a flame graph of twelve hours merges the
same paths, where a real node's would differ more); by work done before, when a segment
is sealed (it is: its wide paths are rolled up in the shapes that are measured, and the
import pays for that); by tame stacks (so all is measured again where they are as diverse as
`diversity.py` makes them; its twelve hours are one such segment over and over); by names that
do not resolve (the share is shown). It can look too dear: two virtual cores may be one real one,
and wall times suffer from whatever else runs; how much that was is shown.

Peers run on the same file if they are at hand: NODESCOPE_BENCH_FLAMESCOPE and
NODESCOPE_BENCH_FLAMEGRAPH name the folders of their repositories. Of flamescope its
own parsing is run, without its web server: what it imports of Flask, libmagic and
cachetools is replaced by stand-ins. NODESCOPE_BENCH_CACHE names a folder for the
captures and the archives made of them, which are otherwise made anew every time (several
gigabytes, a few minutes); the archives are those of the code that made them. Python
finds its modules compiled, as those of an installed package are.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks import captures, diversity
from benchmarks.measured import compiled_modules, read_busy_seconds
from benchmarks.readers import check_exports
from benchmarks.results import Bar, Grid, Options, Result
from benchmarks.twelve_hours import COPIES, QUICK_COPIES, VARIANTS, twelve_hours
from benchmarks.view_times import MB, NODESCOPE, REPEATS, Measure, limit_bar
from benchmarks.view_truth import compare_with_perf, import_text

WINDOWS_S = (10, 37, 60, 88, 110)
SHAPES = (
    ("plain",),
    ("by core", "--merge", "cpu"),
    ("by cgroup", "--merge", "cgroup"),
    ("bottom-up", "--inverted"),
    ("of the kernel", "--mode", "kernel"),
)
SHAPES_OF_MINUTES = (*SHAPES, ("by process", "--merge", "pid"))


def run(options: Options) -> Result:
    cpus, seconds = (16, 60) if options.quick else (captures.CPUS, captures.SECONDS)
    copies = QUICK_COPIES if options.quick else COPIES
    bars: list[Bar] = []
    rows: list[tuple[str, ...]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nodescope-bench-")))
        cache = Path(os.environ.get("NODESCOPE_BENCH_CACHE") or folder / "data")
        data = captures.prepare(
            cache, VARIANTS, cpus=cpus, seconds=seconds, capture_s=6 if options.quick else 30
        )
        first = ("import", str(data.truth)), ("heatmap", "--json"), ("flame", "--json")
        commands = [[*NODESCOPE, *each, "--archive", str(folder / "first")] for each in first]
        stack.enter_context(compiled_modules(*commands))
        twelve = twelve_hours(cache, data.large, seconds, copies)
        busy, began = read_busy_seconds()[0], time.monotonic()
        measure = Measure(rows)
        two = _import_file(measure, bars, data.large[0], folder)
        _views(measure, bars, two, twelve, (seconds, copies))
        _bundle(measure, bars, two, folder)
        compare_with_perf(bars, [data.truth, cache / "real.data"], folder)
        bars += check_exports(two, _count_samples(two), folder)
        import_text(measure, bars, data.large[0], folder)
        diverse = _diverse(measure, bars, cache, folder, options.quick, (cpus, seconds))
        took = time.monotonic() - began
        others = read_busy_seconds()[0] - busy - measure.cpu_s
        shape = tuple(data.shape.items())
        diverse_shape = tuple(diverse.items())
    meanwhile = (
        f"Meanwhile others and this harness took {max(0.0, others) / took:.0%} of one core, "
        f"what was measured {measure.cpu_s / took:.0%}."
    )
    notes = (
        meanwhile,
        *captures.WHAT_IS_SYNTHETIC,
        diversity.WHAT_IS_SYNTHETIC,
    )
    grids = (
        Grid("Processes, from start to finish", ("", "CPU s", "wall s", "peak MB"), tuple(rows)),
        Grid("Inside a process", ("", "wall s", "slowest", "CPU s"), tuple(measure.inside)),
        Grid("The data", ("", ""), shape),
        Grid("The diverse data", ("", ""), diverse_shape),
    )
    return Result(tuple(bars), grids, notes)


def _import_file(measure: Measure, bars: list[Bar], path: Path, folder: Path) -> Path:
    archive = folder / "two"
    path.read_bytes()
    found = measure.nodescope(
        "nodescope import perf.data", "import", str(path), "--archive", str(archive)
    )
    bars += [
        limit_bar("1: import perf.data, CPU", 4, found.cpu_s),
        limit_bar("1: import perf.data, memory", 700, found.peak_bytes / MB, "MB"),
    ]
    label = "nodescope heatmap of perf.data itself"
    first = measure.nodescope(label, "heatmap", "--json", str(path))
    bars += [
        limit_bar("1: first heatmap straight from the file", 2.5, first.wall_s),
        limit_bar("1: first heatmap straight from the file, CPU", 2.5, first.cpu_s),
    ]
    return archive


def _views(
    measure: Measure, bars: list[Bar], two: Path, twelve: Path, size: tuple[int, int]
) -> None:
    seconds, copies = size

    def flame(archive: Path, at_s: int) -> list[str]:
        window = ["--from", f"+{at_s}s", "--to", f"+{at_s + 5}s"]
        return ["flame", "--json", "--archive", str(archive), *window]

    windows = [at * seconds // 120 for at in WINDOWS_S]
    middle = copies // 2 // VARIANTS * VARIANTS * seconds  # the first of the variants again
    compare = flame(twelve, middle + windows[2])
    compare[0] = "compare"
    heatmap = ["heatmap", "--json", "--archive", str(two)]
    small = {f"flame of 5 s at {at} s, of 2 minutes": flame(two, at) for at in windows}
    large = {f"flame of 5 s at {at} s, of 12 hours": flame(twelve, middle + at) for at in windows}
    times = measure.views({"heatmap of 2 minutes": heatmap} | small)
    slow = measure.views(large)
    bars += [
        limit_bar("2: heatmap", 0.15, times["heatmap of 2 minutes"]),
        limit_bar("2: flame graph of any 5 s", 0.3, max(times[label] for label in small)),
    ]
    for name, command in (("heatmap", heatmap), ("flame of 5 s", flame(two, windows[2]))):
        found = [
            measure.nodescope(f"nodescope {name}, 2 minutes", *command) for _ in range(REPEATS)
        ]
        del measure.rows[-REPEATS + 1 :]
        wall = statistics.median(each.wall_s for each in found)
        bars.append(limit_bar(f"2: {name}, start to finish", 0.8, wall))
    for what, found_in in (("wall", times | slow), ("CPU", measure.cpu_of)):
        ratio = max(
            found_in[label.replace("2 minutes", "12 hours")] / found_in[label] for label in small
        )
        name = f"3: flame graph of 5 s in 12 hours beside 2 minutes, {what}"
        bars.append(limit_bar(name, 1.5, ratio, "×"))
    again = flame(twelve, middle + windows[2])
    measure.nodescope("nodescope flame of 5 s, 12 hours", *again)
    _compare(measure, bars, compare, "12 hours")
    _shapes(measure, bars, twelve, "12 hours", SHAPES, (3, 500))


def _compare(measure: Measure, bars: list[Bar], command: list[str], what: str) -> None:
    """Seconds against the half hour before them."""
    label = f"compare of 5 s with 30 minutes, of {what}"
    times = measure.views({label: command})
    bars += [
        limit_bar(label, 0.6, times[label]),
        limit_bar(f"{label}, CPU", 0.6, measure.cpu_of[label]),
    ]
    found = measure.nodescope(f"nodescope {label}", *command)
    bars.append(limit_bar(f"{label}, memory", 500, found.peak_bytes / MB, "MB"))


def _shapes(
    measure: Measure,
    bars: list[Bar],
    archive: Path,
    what: str,
    shapes: tuple[tuple[str, ...], ...],
    most: tuple[float, float],  # seconds of CPU, and MB
) -> None:
    """Flame graphs of every shape of a whole archive, and its functions."""
    commands = {f"flame graph of {what}, {label}": ["flame", *how] for label, *how in shapes}
    commands[f"functions of {what}"] = ["top", "--by", "function"]
    for name, command in commands.items():
        found = measure.nodescope(
            f"nodescope {name}", *command, "--json", "--archive", str(archive)
        )
        bars += [
            limit_bar(f"{name}, CPU", most[0], found.cpu_s),
            limit_bar(f"{name}, memory", most[1], found.peak_bytes / MB, "MB"),
        ]


def _diverse(
    measure: Measure, bars: list[Bar], cache: Path, folder: Path, quick: bool, size: tuple[int, int]
) -> dict[str, str]:
    """The same where stacks are diverse; what the capture is made of."""
    cpus, seconds = size
    stacks = diversity.DIVERSE // 10 if quick else diversity.DIVERSE
    capture, shape = captures.prepare_diverse(
        cache, stacks, cpus=cpus, seconds=seconds, capture_s=5 if quick else 15
    )
    capture.read_bytes()
    archive = folder / "diverse"
    perf = ["sh", "-c", 'exec perf script -i "$0" > /dev/null 2>&1', str(capture)]
    peer = measure.process("perf script of the diverse capture, to nowhere", perf)
    found = measure.nodescope(
        "nodescope import of the diverse capture", "import", str(capture), "--archive", str(archive)
    )
    bars += [
        limit_bar("import of the diverse capture beside perf script, CPU", 0.5,
                  found.cpu_s / max(0.01, peer.cpu_s), "×"),
        limit_bar("import of the diverse capture, memory", 700, found.peak_bytes / MB, "MB"),
    ]  # fmt: skip
    _shapes(measure, bars, archive, "the diverse 2 minutes", SHAPES_OF_MINUTES, (1, 300))
    twelve = twelve_hours(cache, [capture], seconds, QUICK_COPIES if quick else COPIES)
    _shapes(measure, bars, twelve, "12 diverse hours", SHAPES, (3, 500))
    at = (QUICK_COPIES if quick else COPIES) // 2 * seconds + seconds // 2
    window = ["--json", "--archive", str(twelve), "--from", f"+{at}s", "--to", f"+{at + 5}s"]
    label = "flame of 5 s of 12 diverse hours"
    times = measure.views({label: ["flame", *window]})
    bars.append(limit_bar(label, 0.3, times[label]))
    _compare(measure, bars, ["compare", *window], "12 diverse hours")
    return shape


def _bundle(measure: Measure, bars: list[Bar], two: Path, folder: Path) -> None:
    path = folder / "incident.nodescope"
    measure.nodescope(
        "nodescope export bundle", "export", "bundle", "--archive", str(two), "--output", str(path)
    )
    bars.append(limit_bar("5: bundle of 2 minutes", 30, path.stat().st_size / MB, "MB"))


def _count_samples(archive: Path) -> int:
    from nodescope.archive.reader import Archive

    return sum(len(each.read("samples", ["tick"])) for each in Archive.open(archive).segments())
