"""`python -m benchmarks [NAME…] [--quick] [--peer NAME=COMMAND]`.

Without names all run, nearly two hours: `lab` makes every incident many times and takes
one of them, `recorder_cost` and `node_cost` a quarter of an hour each. `--quick` only
tries the harness: it prints what it saw, marked as not the bar, and leaves RESULTS.md as
it is.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time

from benchmarks import results
from benchmarks.machine import read_facts
from nodescope.errors import NodescopeError

BENCHMARKS = {
    "recorder_cost": "The recorder's own cost, beside perf (bars 1 and 2)",
    "large_node": "Ring data of a 96-core node (bar 3)",
    "symbols": "Names of functions (bar 4)",
    "crashes": "Kills, a full disk, a stepped clock, a stopped recorder (bar 5)",
    "core_view": "One core held in the kernel (bar 6)",
    "views": "Import, look, compare, export: time travel (its bars 1 to 6)",
    "node_cost": "The recorder with every observer on (issue 4, bar 6)",
    "lab": "Incidents made for real, and who is blamed (issue 5, bar 1)",
    "degradation": "Recordings with a part removed: absence is not evidence (issue 14, bar 3)",
    "story": "The synthetic story of a 96-core node (issue 5, bar 2)",
    "image_gate": "The gate of images, Debian and rpm (issue 15, bar 7)",
    "kernel_log": "A flood in the kernel's log (bar 4 of issue 4)",
    "page": "The server of the page, 12 hours of 96 cores (issue 6, bar 2)",
    "page_browser": "The page in the browser, 12 hours of 96 cores (issue 6, bar 2)",
    "proof": "Verdicts on remedies, on simulated nodes (issue 15, bar 5)",
    "zombies": "Removed memory cgroups that are still held (bar 1 of issue 4)",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="try the harness; not the bar")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=COMMAND",
        help="another profiler to run on the same load: {seconds} and {folder} are filled in, "
        "it must end by itself and leave its output in the folder",
    )
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if os.geteuid() != 0:
        parser.error("needs root: perf events of all cores, a small tmpfs")
    peers = dict(peer.split("=", 1) for peer in args.peer)
    options = results.Options(args.quick, peers)
    failed = False
    for name in args.names or BENCHMARKS:
        failed |= not _run(name, options)
    return int(failed)


def _run(name: str, options: results.Options) -> bool:
    """Run one; whether every bar was met."""
    marked = " (QUICK: not the bar)" if options.quick else ""
    print(f"== {name}{marked}", flush=True)
    module = importlib.import_module(f"benchmarks.{name}")
    facts = read_facts()
    started = time.monotonic()
    try:
        result: results.Result = module.run(options)
    except NodescopeError as error:  # the lab, on a machine that serves somebody
        print(f"{name} could not run: {error}\nhint: {error.hint}", flush=True)
        return False
    summary = " ".join((module.__doc__ or "").split("\n\n")[0].split())
    entry = results.make_entry(BENCHMARKS[name], summary, facts, time.monotonic() - started, result)
    for bar in result.bars:
        word = results.verdict(bar.passed)
        print(f"{bar.name}: {bar.measured} (bar: {bar.limit or 'none'}) {word}{marked}")
    print("\n".join(results.render_entry(name, entry)), flush=True)
    if not options.quick:
        # Read again: another run may have written its own entry meanwhile.
        results.save(results.read_state() | {name: entry}, list(BENCHMARKS))
    return all(bar.passed is not False for bar in result.bars)


if __name__ == "__main__":
    sys.exit(main())
