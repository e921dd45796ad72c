"""5,000 real dying memory cgroups pinned by tmpfs under one parent and 300 by page cache under
another: what `nodescope zombies` counts, names and takes, before and after its advice is followed.

The makers are processes that visit each cgroup and write one page there. Counts are
differences to a look taken before, since a machine has dying ones already; parents
are told as they stand. They are counted twice: on the machine as it is, and beside a cgroup
from which a pile was removed before and in which a process reads 2 GB of holes over and
over, letting half of its page cache go each time. The command is timed from start to end
as a process of its own, seven times, the median counts; that it writes nothing is told
by the kernel's count of blocks it wrote (getrusage) and by the folder it ran in.

How it could be fooled: by other work on the machine that makes or frees cgroups
(nothing else should run), and by a machine so busy that the command waits for a core
(the load is printed with the figures).
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.sources.memory_cgroups.making import Nursery, nursery, v1_mount

from benchmarks.results import Bar, Grid, Options, Result

SLACK = 20
PAGE = 4096
PILE = 500  # dying ones that a live parent had
HOLES = 2 << 30


def run(options: Options) -> Result:
    mount = v1_mount()
    if mount is None:
        return Result((Bar("dying cgroups", "", "needs memory on cgroup v1", None),))
    many, few = (500, 100) if options.quick else (5_000, 300)
    name = uuid.uuid4().hex[:8]
    in_memory, on_disk = Path(f"/dev/shm/bench-{name}"), Path(f"/var/tmp/bench-{name}")
    before = _look()
    with (
        nursery(mount, "bench-shmem", in_memory) as shmem,
        nursery(mount, "bench-cache", on_disk) as cache,
    ):
        started = time.monotonic()
        shmem.make(many)
        cache.make(few)
        making_s = time.monotonic() - started
        now = _settled(lambda look: _held(look, shmem) >= many and _held(look, cache) >= few)
        times, cpu_s, written = _timed(5 if options.quick else 7)
        load = os.getloadavg()[0]
        beside = _beside_a_live_parent(mount, shmem, cache, many, few)
        files = _look("--files", str(in_memory), str(on_disk))["files"]
        named = {each["path"] for each in files}
        maker = _watched(mount)
        shutil.rmtree(in_memory)
        cache.empty()
        after = _settled(lambda look: look["dying"] <= before["dying"] + SLACK, shmem, cache)
    made = now["dying"] - before["dying"]
    in_a, in_b = _parent(now, shmem), _parent(now, cache)
    live_a, live_b = _parent(beside, shmem), _parent(beside, cache)
    all_named = sum(f"{in_memory}/file-{at}" in named for at in range(many))
    cache_named = sum(f"{on_disk}/file-{at}" in named for at in range(few))
    left = after["dying"] - before["dying"]
    median = statistics.median(times)
    wanted = many + few
    bars = (
        _near("dying ones counted", made, wanted),
        _near("of them under the parent of tmpfs", in_a["dying"], many),
        _near("of them under the parent of page cache", in_b["dying"], few),
        _near("the same beside a live parent that reads 2 GB", live_a["dying"], many),
        _near("and of page cache beside it", live_b["dying"], few),
        Bar("tmpfs held", f"{many * PAGE:,} B", f"{in_a['held'].get('shmem', 0):,} B",
            in_a["held"].get("shmem", 0) == many * PAGE),
        Bar("page cache held", f"≥ {few * PAGE:,} B", f"{in_b['held'].get('file', 0):,} B",
            in_b["held"].get("file", 0) >= few * PAGE),
        Bar("files named by --files", f"{many:,} and ≥ {few * 9 // 10}",
            f"{all_named:,} and {cache_named}", all_named == many and cache_named >= few * 0.9),
        Bar("maker named by --watch", "yes", maker or "no", bool(maker)),
        Bar("left after the advice", f"≤ {SLACK}", str(left), left <= SLACK),
        Bar("the command, start to end", "< 300 ms", f"{median * 1000:.0f} ms", median < 0.3),
        Bar("of it on a core", "", f"{cpu_s * 1000:.0f} ms"),
        Bar("blocks it wrote", "0", str(written), written == 0),
    )  # fmt: skip
    grid = Grid(
        "",
        ("look", "tracked", "visible", "dying", "verdict"),
        tuple(
            (word, *(f"{look[key]:,}" for key in ("tracked", "visible", "dying")), look["verdict"])
            for word, look in (
                ("before", before),
                ("made", now),
                ("beside a live parent", beside),
                ("advice followed", after),
            )
        ),
    )
    taken = ", ".join(f"{each * 1000:.0f}" for each in sorted(times))
    cores = os.cpu_count()
    notes = (
        f"{wanted:,} were made in {making_s:.1f} s.",
        f"The command took {taken} ms, at a load average of {load:.1f} on {cores} cores.",
        "cgroup v1 counts dying ones only together: numbers by parent are shared out; "
        + "; ".join(
            f"{each['path']}: {each['dying']:,} by {each['evidence']}, "
            f"{each['least']:,} to {each['most']:,}"
            for each in now["parents"]
        ),
    )
    return Result(bars, (grid,), notes)


def _beside_a_live_parent(
    mount: str, shmem: Nursery, cache: Nursery, many: int, few: int
) -> dict[str, Any]:
    """One look while a parent that had a pile of its own reads much and lets it go."""
    folder = Path(f"/var/tmp/bench-{uuid.uuid4().hex[:8]}")
    with nursery(mount, "bench-live", folder) as live:
        live.make(PILE)
        live.forget()
        with live.reading(HOLES):
            return _settled(lambda look: _held(look, shmem) >= many and _held(look, cache) >= few)


def _near(name: str, measured: int, wanted: int) -> Bar:
    passed = abs(measured - wanted) <= SLACK
    return Bar(name, f"{wanted:,} ± {SLACK}", f"{measured:,}", passed)


def _command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("nodescope")), "zombies", *arguments]


def _look(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(_command("--json", *arguments), check=False, capture_output=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def _parent(look: dict[str, Any], made: Nursery) -> dict[str, Any]:
    none = {"dying": 0, "held": {}, "evidence": "none", "least": 0, "most": 0}
    return next((each for each in look["parents"] if each["path"] == made.path), none)


def _held(look: dict[str, Any], made: Nursery) -> int:
    """Pages."""
    return int(sum(_parent(look, made)["held"].values())) // PAGE


def _settled(condition: Callable[[dict[str, Any]], bool], *nudged: Nursery) -> dict[str, Any]:
    """The first look that fits, or the last of a minute: the kernel's counters lag."""
    deadline = time.monotonic() + 60
    while True:
        for each in nudged:
            each.empty()
        look = _look()
        if condition(look) or time.monotonic() > deadline:
            return look
        time.sleep(0.5)


def _timed(runs: int) -> tuple[list[float], float, int]:
    """Seconds of each run, CPU seconds of one on average, and blocks written by all."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(runs):
            started = time.perf_counter()
            subprocess.run(_command(), check=False, stdout=subprocess.DEVNULL, cwd=folder)
            times.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        written = after.ru_oublock - before.ru_oublock + len(os.listdir(folder))
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return times, cpu_s / runs, written


def _watched(mount: str) -> str:
    """The name of the maker, as --watch tells it; empty if it does not."""
    folder = Path(f"/dev/shm/bench-{uuid.uuid4().hex[:8]}")
    with nursery(mount, "bench-maker", folder) as made, made.making(0.1) as process:
        for maker in _look("--watch", "5s")["watch"]["makers"]:
            if maker["parent"] == made.path and maker["unreleased"]:
                known = maker["pids"] == [process.pid]
                return f"{maker['maker']} (pid {'known' if known else 'wrong'})"
    return ""
