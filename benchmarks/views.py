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

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import nodescope
from benchmarks.measured import Measured, compiled_modules, read_busy_seconds, run_measured
from benchmarks.readers import check_exports
from benchmarks.results import Bar, Grid, Options, Result

MB, GB = 1e6, 1e9
COPIES = 360  # of two minutes: twelve hours
VARIANTS = 3
TEXT_BYTES = 2.2e9  # what the bar is about
REPEATS = 5
WINDOWS_S = (10, 37, 60, 88, 110)
SHAPES = (
    ("plain",),
    ("by core", "--merge", "cpu"),
    ("by cgroup", "--merge", "cgroup"),
    ("bottom-up", "--inverted"),
    ("of the kernel", "--mode", "kernel"),
)
_NODESCOPE = [sys.executable, "-m", "nodescope.cli.main"]
_FLAMESCOPE = """
import sys, time, types
folder, text = sys.argv[1:3]
sys.path.insert(0, folder)
def stand_in(name, **content):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(content)
stand_in("flask", abort=lambda code: sys.exit(code))
stand_in("magic", from_file=lambda path, mime: "text/plain")
stand_in("cachetools", cached=lambda cache: lambda call: call, LRUCache=lambda maxsize: None)
stand_in("app", __path__=[folder + "/app"])
from app import config
config.PROFILE_DIR = text.rpartition("/")[0]
if sys.argv[3] == "heatmap":
    from app.perf.heatmap import perf_read_offsets
    print(len(perf_read_offsets(text).offsets))
else:
    from app.perf.flame_graph import perf_generate_flame_graph
    for _ in range(2):
        before = time.process_time()
        perf_generate_flame_graph(text, 30, 35)
        print(time.process_time() - before, file=sys.stderr)
"""


def run(options: Options) -> Result:
    from benchmarks import captures, diversity

    cpus, seconds = (16, 60) if options.quick else (captures.CPUS, captures.SECONDS)
    bars: list[Bar] = []
    rows: list[tuple[str, ...]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nodescope-bench-")))
        cache = Path(os.environ.get("NODESCOPE_BENCH_CACHE") or folder / "data")
        data = captures.prepare(
            cache, VARIANTS, cpus=cpus, seconds=seconds, capture_s=6 if options.quick else 30
        )
        first = ("import", str(data.truth)), ("heatmap", "--json"), ("flame", "--json")
        commands = [[*_NODESCOPE, *each, "--archive", str(folder / "first")] for each in first]
        stack.enter_context(compiled_modules(*commands))
        twelve = _twelve_hours(cache, data.large, seconds)
        busy, began = read_busy_seconds()[0], time.monotonic()
        measure = _Measure(rows)
        two = _import_file(measure, bars, data.large[0], folder)
        _views(measure, bars, two, twelve, seconds)
        _bundle(measure, bars, two, folder)
        _truth(bars, [data.truth, cache / "real.data"], folder)
        bars += check_exports(two, _count_samples(two), folder)
        _text(measure, bars, data.large[0], folder)
        diverse = _diverse(measure, bars, cache, folder, cpus, seconds, options.quick)
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


class _Measure:
    """Runs processes, and keeps a row of each."""

    def __init__(self, rows: list[tuple[str, ...]]) -> None:
        self.rows = rows
        self.inside: list[tuple[str, ...]] = []
        self.cpu_s = 0.0
        self.cpu_of: dict[str, float] = {}  # of a view inside a process

    def process(self, label: str, command: list[str], *, may_fail: bool = False) -> Measured:
        """One process, from start to finish."""
        found = run_measured(command, interval_s=0.02)
        self.cpu_s += found.cpu_s
        print(f"   {label}: {found.cpu_s:.2f} s CPU, {found.wall_s:.2f} s", flush=True)
        if found.returncode and not may_fail:
            raise RuntimeError(f"{command}: exit code {found.returncode}: {found.stderr[-2000:]}")
        self.rows.append((
            label, f"{found.cpu_s:.2f}", f"{found.wall_s:.2f}", f"{found.peak_bytes / MB:.0f}",
        ))  # fmt: skip
        return found

    def nodescope(self, label: str, *arguments: str, may_fail: bool = False) -> Measured:
        return self.process(label, [*_NODESCOPE, *arguments], may_fail=may_fail)

    def views(self, commands: dict[str, list[str]], repeats: int = REPEATS) -> dict[str, float]:
        """The median time of each command inside one process."""
        asked = json.dumps([repeats, commands])
        command = [sys.executable, "-m", "benchmarks.views"]
        output = subprocess.run(command, input=asked.encode(), stdout=subprocess.PIPE, check=True)
        found: dict[str, list[tuple[float, float]]] = json.loads(output.stdout)
        medians = {}
        for label, times in found.items():
            wall, cpu = (statistics.median(each) for each in zip(*times, strict=True))
            medians[label] = wall
            self.cpu_of[label] = cpu
            self.inside.append((label, f"{wall:.3f}", f"{max(times)[0]:.3f}", f"{cpu:.3f}"))
            print(f"   inside: {label}: {wall:.3f} s, {cpu:.3f} s CPU", flush=True)
        return medians


def _bar(name: str, limit: float, value: float, unit: str = "s") -> Bar:
    digits = 0 if unit == "MB" and value >= 10 else 2
    return Bar(name, f"≤ {limit:g} {unit}", f"{value:.{digits}f} {unit}", value <= limit)


def _import_file(measure: _Measure, bars: list[Bar], path: Path, folder: Path) -> Path:
    archive = folder / "two"
    path.read_bytes()
    found = measure.nodescope(
        "nodescope import perf.data", "import", str(path), "--archive", str(archive)
    )
    bars += [
        _bar("1: import perf.data, CPU", 4, found.cpu_s),
        _bar("1: import perf.data, memory", 700, found.peak_bytes / MB, "MB"),
    ]
    label = "nodescope heatmap of perf.data itself"
    first = measure.nodescope(label, "heatmap", "--json", str(path))
    bars += [
        _bar("1: first heatmap straight from the file", 2.5, first.wall_s),
        _bar("1: first heatmap straight from the file, CPU", 2.5, first.cpu_s),
    ]
    return archive


def _twelve_hours(cache: Path, captures: list[Path], seconds: int) -> Path:
    """The archive of twelve hours; one that the same code made of the same captures serves."""
    from benchmarks.captures import repeat_archive

    folder = cache / f"archives-{_fingerprint(captures)}"
    done = folder / "twelve"
    if not done.exists():
        print("   making twelve hours", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        archives = [folder / path.stem for path in captures]
        for path, archive in zip(captures, archives, strict=True):
            command = [*_NODESCOPE, "import", str(path), "--archive", str(archive)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        repeat_archive(archives, folder / "part", COPIES, seconds)
        (folder / "part").rename(done)
    return done


def _fingerprint(captures: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in captures:
        status = path.stat()
        digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    for package in ("records", "archive", "exchange"):
        for path in sorted((Path(nodescope.__file__).parent / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _views(measure: _Measure, bars: list[Bar], two: Path, twelve: Path, seconds: int) -> None:
    def flame(archive: Path, at_s: int) -> list[str]:
        window = ["--from", f"+{at_s}s", "--to", f"+{at_s + 5}s"]
        return ["flame", "--json", "--archive", str(archive), *window]

    windows = [at * seconds // 120 for at in WINDOWS_S]
    middle = COPIES // 2 // VARIANTS * VARIANTS * seconds  # the first of the variants again
    compare = flame(twelve, middle + windows[2])
    compare[0] = "compare"
    heatmap = ["heatmap", "--json", "--archive", str(two)]
    small = {f"flame of 5 s at {at} s, of 2 minutes": flame(two, at) for at in windows}
    large = {f"flame of 5 s at {at} s, of 12 hours": flame(twelve, middle + at) for at in windows}
    times = measure.views({"heatmap of 2 minutes": heatmap} | small)
    slow = measure.views(large)
    against = measure.views({"compare of 5 s with 30 minutes": compare}, 3)
    bars += [
        _bar("2: heatmap", 0.15, times["heatmap of 2 minutes"]),
        _bar("2: flame graph of any 5 s", 0.3, max(times[label] for label in small)),
        _bar("2: compare with 30 minutes", 0.6, against["compare of 5 s with 30 minutes"]),
    ]
    for name, command in (("heatmap", heatmap), ("flame of 5 s", flame(two, windows[2]))):
        found = [
            measure.nodescope(f"nodescope {name}, 2 minutes", *command) for _ in range(REPEATS)
        ]
        del measure.rows[-REPEATS + 1 :]
        wall = statistics.median(each.wall_s for each in found)
        bars.append(_bar(f"2: {name}, start to finish", 0.8, wall))
    for what, found_in in (("wall", times | slow), ("CPU", measure.cpu_of)):
        ratio = max(
            found_in[label.replace("2 minutes", "12 hours")] / found_in[label] for label in small
        )
        name = f"3: flame graph of 5 s in 12 hours beside 2 minutes, {what}"
        bars.append(_bar(name, 1.5, ratio, "×"))
    again = flame(twelve, middle + windows[2])
    measure.nodescope("nodescope flame of 5 s, 12 hours", *again)
    measure.nodescope("nodescope compare with 30 minutes, 12 hours", *compare)
    _shapes(measure, bars, twelve, "12 hours", 3, 500)


def _shapes(
    measure: _Measure, bars: list[Bar], archive: Path, what: str, most_s: float, most_mb: float
) -> None:
    """Flame graphs of every shape of a whole archive."""
    for label, *options in SHAPES:
        command = ["flame", "--json", "--archive", str(archive), *options]
        found = measure.nodescope(f"nodescope flame of {what}, {label}", *command)
        name = f"flame graph of {what}, {label}"
        bars += [
            _bar(f"{name}, CPU", most_s, found.cpu_s),
            _bar(f"{name}, memory", most_mb, found.peak_bytes / MB, "MB"),
        ]


def _diverse(
    measure: _Measure,
    bars: list[Bar],
    cache: Path,
    folder: Path,
    cpus: int,
    seconds: int,
    quick: bool,
) -> dict[str, str]:
    """The same where stacks are diverse; what the capture is made of."""
    from benchmarks.captures import prepare_diverse, repeat_archive
    from benchmarks.diversity import DIVERSE

    stacks = DIVERSE // 10 if quick else DIVERSE
    capture, shape = prepare_diverse(
        cache, stacks, cpus=cpus, seconds=seconds, capture_s=5 if quick else 15
    )
    capture.read_bytes()
    archive, twelve = folder / "diverse", folder / "diverse-twelve"
    perf = ["sh", "-c", 'exec perf script -i "$0" > /dev/null 2>&1', str(capture)]
    peer = measure.process("perf script of the diverse capture, to nowhere", perf)
    found = measure.nodescope(
        "nodescope import of the diverse capture", "import", str(capture), "--archive", str(archive)
    )
    bars += [
        _bar("import of the diverse capture beside perf script, CPU", 0.5,
             found.cpu_s / max(0.01, peer.cpu_s), "×"),
        _bar("import of the diverse capture, memory", 700, found.peak_bytes / MB, "MB"),
    ]  # fmt: skip
    _shapes(measure, bars, archive, "the diverse 2 minutes", 1, 300)
    repeat_archive([archive], twelve, COPIES, seconds)
    _shapes(measure, bars, twelve, "12 diverse hours", 3, 500)
    at = COPIES // 2 * seconds + seconds // 2
    window = ["--from", f"+{at}s", "--to", f"+{at + 5}s"]
    label = "flame of 5 s of 12 diverse hours"
    times = measure.views({label: ["flame", "--json", "--archive", str(twelve), *window]})
    bars.append(_bar(label, 0.3, times[label]))
    return shape


def _bundle(measure: _Measure, bars: list[Bar], two: Path, folder: Path) -> None:
    path = folder / "incident.nodescope"
    measure.nodescope(
        "nodescope export bundle", "export", "bundle", "--archive", str(two), "--output", str(path)
    )
    bars.append(_bar("5: bundle of 2 minutes", 30, path.stat().st_size / MB, "MB"))


def _count_samples(archive: Path) -> int:
    from nodescope.archive.reader import Archive

    return sum(len(each.read("samples", ["tick"])) for each in Archive.open(archive).segments())


def _truth(bars: list[Bar], paths: list[Path], folder: Path) -> None:
    """What real captures hold, beside what perf script says."""
    from tests.exchange import test_perf_capture as reading
    from tests.exchange.rows import count, read_rows
    from tests.symbols.test_perf_agreement import same

    different = samples = named = 0
    wrong: Counter[tuple[str, str, str]] = Counter()
    for number, path in enumerate(paths):
        archive = folder / f"truth{number}"
        command = [*_NODESCOPE, "import", str(path), "--archive", str(archive)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        rows, said = read_rows(archive), reading.perf_script(path)
        ours, theirs = count(rows), reading.count_said(said)
        different += (ours - theirs).total() + (theirs - ours).total()
        samples += len(said)
        by_key = {(row.time_ns // 1000, row.cpu, row.tid): row for row in rows}
        for one in said:
            row = by_key.get((one.time_ns // 1000, one.cpu, one.tid))
            if row is None or not one.frames:
                continue
            for end, theirs_name, our_name in (
                ("leaf", one.frames[0], row.stack[-1]),
                ("root", one.frames[-1], row.stack[0]),
            ):
                if theirs_name != "[unknown]":
                    named += 1
                    if not same(our_name, theirs_name):
                        wrong[end, our_name, theirs_name] += 1
    print(f"   ends that differ: {wrong.most_common(10)}", flush=True)
    bars += [
        Bar(
            "6: counts by process, core and second, of real captures",
            "all as perf script",
            f"{different} of {samples:,} differ",
            different == 0,
        ),
        Bar(
            "6: leaf and root functions that perf names",
            "all as perf script",
            f"{wrong.total()} of {named:,} differ ({len(wrong)} pairs of names)",
            not wrong,
        ),
    ]


def _text(measure: _Measure, bars: list[Bar], path: Path, folder: Path) -> None:
    text = folder / "perf.stacks"
    perf = ["sh", "-c", 'exec perf script -i "$0" > "$1" 2>/dev/null', str(path), str(text)]
    alone = measure.process("perf script, to a file", perf)
    size = text.stat().st_size
    name = f"nodescope import perf.stacks ({size / GB:.2f} GB)"
    found = measure.nodescope(name, "import", str(text), "--archive", str(folder / "text"))
    scaled = found.cpu_s * max(1.0, TEXT_BYTES / size)
    limit = f"≤ 30 s for {TEXT_BYTES / GB:.1f} GB"
    said = f"{found.cpu_s:.1f} s for {size / GB:.2f} GB, so {scaled:.1f} s"
    bars += [
        Bar("4: import of perf script's text, CPU", limit, said, scaled <= 30),
        _bar("4: import of perf script's text, memory", 400, found.peak_bytes / MB, "MB"),
        Bar("perf script alone, CPU", "", f"{alone.cpu_s:.1f} s"),
    ]
    flamescope = os.environ.get("NODESCOPE_BENCH_FLAMESCOPE")
    for what in ("heatmap", "flame graph of 5 s"):
        name = f"flamescope {what}, from that text"
        if flamescope is None:
            measure.rows.append((name, "not at hand", "", ""))
            continue
        command = [sys.executable, "-c", _FLAMESCOPE, flamescope, str(text), what]
        peer = measure.process(name, command, may_fail=True)
        if peer.returncode:
            measure.rows[-1] = (name, f"failed: {peer.stderr.strip()[-100:]}", "", "")
        elif what != "heatmap":
            cold, warm = (float(word) for word in peer.stderr.split()[-2:])
            measure.rows[-1] = (
                f"{name}: {cold:.1f} s cold, {warm:.1f} s warm",
                *measure.rows[-1][1:],
            )
    flamegraph = os.environ.get("NODESCOPE_BENCH_FLAMEGRAPH")
    name = "FlameGraph's stackcollapse-perf.pl, from that text"
    if flamegraph is None:
        measure.rows.append((name, "not at hand", "", ""))
    else:
        measure.process(name, ["perl", f"{flamegraph}/stackcollapse-perf.pl", str(text)])


# -- the process in which views are measured -----------------------------------


def _main() -> None:
    from nodescope.cli.main import main

    repeats, commands = json.load(sys.stdin)
    answer, found = sys.stdout, {}
    for label, command in commands.items():
        times = []
        for _ in range(repeats + 1):
            with open(os.devnull, "w", encoding="utf-8") as sys.stdout:
                before, cpu = time.perf_counter(), time.process_time()
                code = main(command)
                times.append((time.perf_counter() - before, time.process_time() - cpu))
            if code:
                raise RuntimeError(f"{command}: exit code {code}")
        found[label] = times[1:]
    sys.stdout = answer
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
