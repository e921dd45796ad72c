"""What an import says beside what perf script says, and how long peers take with its text."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from benchmarks.results import Bar
from benchmarks.view_times import MB, NODESCOPE, Measure, limit_bar

GB = 1e9
TEXT_BYTES = 2.2e9  # what the bar is about
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


def compare_with_perf(bars: list[Bar], paths: list[Path], folder: Path) -> None:
    """What real captures hold, beside what perf script says."""
    from tests.exchange import test_perf_capture as reading
    from tests.exchange.rows import count, read_rows
    from tests.symbols.test_perf_agreement import same

    different = samples = named = 0
    wrong: Counter[tuple[str, str, str]] = Counter()
    for number, path in enumerate(paths):
        archive = folder / f"truth{number}"
        command = [*NODESCOPE, "import", str(path), "--archive", str(archive)]
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


def import_text(measure: Measure, bars: list[Bar], path: Path, folder: Path) -> None:
    """Import perf script's text, and have peers read it."""
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
        limit_bar("4: import of perf script's text, memory", 400, found.peak_bytes / MB, "MB"),
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
