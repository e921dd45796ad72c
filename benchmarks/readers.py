"""Exports, re-opened by the programs they are for: the same totals must come out.

pprof's own reader is Go's (`go tool pprof`), that of folded stacks FlameGraph's
`flamegraph.pl` (NODESCOPE_BENCH_FLAMEGRAPH: its folder), that of speedscope's files
its importer, in a browser most often: NODESCOPE_BENCH_SPEEDSCOPE names a script for
node that opens files with it and prints, as JSON, a list of {"profiles": [{"total"}]}.
One that is not at hand is named so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.results import Bar

_NODESCOPE = [sys.executable, "-m", "nodescope.cli.main"]


def check_exports(archive: Path, samples: int, folder: Path) -> list[Bar]:
    """Export an archive of so many samples, and ask each reader how many it sees."""
    bars = []
    for name, suffix, reader in (
        ("pprof", "pb.gz", _go_pprof),
        ("folded", "folded", _flamegraph),
        ("speedscope", "speedscope.json", _speedscope),
    ):
        path = folder / f"export.{suffix}"
        command = ["export", name, "--archive", str(archive), "--output", str(path)]
        subprocess.run([*_NODESCOPE, *command], check=True, stdout=subprocess.DEVNULL)
        bars.append(_ask(name, samples, reader, path))
    return bars


def _ask(name: str, samples: int, reader: Callable[[Path], int | None], path: Path) -> Bar:
    label, wanted = f"6: {name}, as its own reader sees it", f"{samples:,} samples"
    found = reader(path)
    if found is None:
        return Bar(label, wanted, "its reader is not at hand")
    return Bar(label, wanted, f"{found:,} samples", found == samples)


def _output(*command: str) -> str:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode("utf-8", "replace")


def _go_pprof(path: Path) -> int | None:
    if shutil.which("go") is None:
        return None
    text = _output("go", "tool", "pprof", "-raw", str(path))
    rows = text.partition("\nSamples:\n")[2].partition("\nLocations")[0]
    return sum(int(row[1]) for row in re.finditer(r"^ *(\d+) +\d+: ", rows, re.MULTILINE))


def _flamegraph(path: Path) -> int | None:
    folder = os.environ.get("NODESCOPE_BENCH_FLAMEGRAPH")
    if folder is None:
        return None
    picture = _output("perl", f"{folder}/flamegraph.pl", str(path))
    whole = re.search(r"<title>all \(([\d,]+) samples, 100%\)</title>", picture)
    return int(whole[1].replace(",", "")) if whole else 0


def _speedscope(path: Path) -> int | None:
    driver = os.environ.get("NODESCOPE_BENCH_SPEEDSCOPE")
    if driver is None:
        return None
    (answer,) = json.loads(_output("node", driver, str(path)))
    return sum(int(profile["total"]) for profile in answer.get("profiles", ()))
