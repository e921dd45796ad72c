"""Recordings of the lab's scenarios and of this machine at rest, for `lab.py` to diagnose.

A recording that is in the folder already is taken from there. A run in which the machine
did not let the lab have its core is made again, up to three times.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import read_commit
from nodescope.lab.busy_node import BUSY_NODE
from nodescope.lab.run import run
from nodescope.lab.scenario import Truth
from nodescope.lab.small_runs import run_until_it_happens
from nodescope.lab.truth_file import read_truth, truth_path

QUIET_S = 20


@dataclass(frozen=True, slots=True)
class Recording:
    """A run as it was recorded, the truth about it, and how it came about."""

    archive: Path
    truth: Truth
    attempts: int
    commit: str
    ended: str


def record_scenario(folder: Path, name: str, number: int, *, healthy: bool) -> Recording:
    """The run of that number, made now unless it was before."""
    archive = folder / f"{name}-{'healthy' if healthy else 'sick'}-{number}"
    made = archive.with_name(f"{archive.name}.made.json")  # written last: the run is whole
    if not made.exists():
        shutil.rmtree(archive, ignore_errors=True)  # of a run that was interrupted
        _, attempts = run_until_it_happens(
            name, archive, healthy=healthy, seed=number + 1, say=_say
        )
        ended = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        how = {"attempts": attempts, "commit": read_commit(), "ended": ended}
        made.write_text(json.dumps(how))
    return Recording(archive, read_truth(archive), **json.loads(made.read_text()))


def record_quiet(folder: Path, number: int) -> Path:
    """This machine as it is."""
    archive = folder / f"quiet-{number}"
    command = [sys.executable, "-m", "nodescope.cli.main", "record", "--archive", str(archive)]
    if not archive.exists():
        subprocess.run([*command, "--duration", f"{QUIET_S}s", "--quiet"], check=True)
    return archive


def record_busy(folder: Path, number: int) -> Path:
    """A busy node that is well, others each time; made now unless it was before."""
    archive = folder / f"busy-node-{number}"
    if not truth_path(archive).exists():
        shutil.rmtree(archive, ignore_errors=True)
        run(BUSY_NODE, archive, seed=number + 1)
    return archive


def _say(message: str) -> None:
    print(message, flush=True)
