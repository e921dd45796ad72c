"""Many live cgroups, some with a task that wakes once a second: a node full of pods.

Each is one path in every hierarchy that accounts for CPU, memory or tasks, as a pod's
is. A process of its own keeps them: it ends with its standard input, so that they are
taken away again however the benchmark ends. `python -m benchmarks.live_cgroups COUNT
TASKS` is that process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nodescope.sources.cgroups.hierarchies import UNIFIED, read_hierarchies
from nodescope.sources.places import Places

NAME = "nodescope-bench"
CONTROLLERS = frozenset(("cpu", "cpuacct", "memory", "pids"))


@contextmanager
def live_cgroups(count: int, tasks: int) -> Iterator[None]:
    """As many cgroups, the first of them with a task each, for as long as the context lasts."""
    command = [sys.executable, "-m", "benchmarks.live_cgroups", str(count), str(tasks)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as keeper:
        # Leaving closes its input and waits for it, which takes the cgroups away.
        assert keeper.stdout is not None
        if not keeper.stdout.readline():
            raise SystemExit(f"{count} cgroups could not be made")
        yield


def keep(count: int, tasks: int) -> None:
    """Make them, say so, and hold them until nobody wants them any more."""
    tops = [mount / f"{NAME}-{os.getpid()}" for mount in find_mounts(Places())]
    sleepers: list[int] = []
    try:
        for top in tops:
            top.mkdir()
            for number in range(count):
                pod(top, number).mkdir()
        for number in range(tasks):
            sleepers.append(start_sleeper())
            for top in tops:
                (pod(top, number) / "cgroup.procs").write_text(str(sleepers[-1]))
        print("made", flush=True)
        sys.stdin.read()
    finally:
        for pid in sleepers:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        for top in tops:
            remove(top)


def find_mounts(places: Places) -> list[Path]:
    """Where a path of a pod stands: several times on v1, once on v2."""
    hierarchies = read_hierarchies(places)
    found = [each for each in hierarchies if each.version == 1 and each.controllers & CONTROLLERS]
    chosen = found or [each for each in hierarchies if each.name == UNIFIED]
    return [each.mount for each in chosen]


def pod(top: Path, number: int) -> Path:
    return top / f"pod{number:04d}"


def start_sleeper() -> int:
    """A task that wakes often enough to be seen as alive, and outlives its parent by a second."""
    keeper = os.getpid()
    pid = os.fork()
    if pid == 0:
        while os.getppid() == keeper:
            time.sleep(1)
        os._exit(0)  # never into the keeper's own clean-up
    return pid


def remove(top: Path) -> None:
    """The cgroups below, then the top; what was never made is passed over."""
    for folder in [*top.glob("pod*"), top]:
        with suppress(FileNotFoundError):
            folder.rmdir()


if __name__ == "__main__":
    keep(int(sys.argv[1]), int(sys.argv[2]))
