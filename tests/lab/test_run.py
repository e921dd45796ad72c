"""A run that is ended in the middle, by force or by asking: nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.errors import NodescopeError
from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.ground import LEDGERS, MARK, clean, read_start_time
from nodescope.lab.refusals import check

pytestmark = [pytest.mark.root, pytest.mark.live, pytest.mark.beside]


@pytest.fixture
def lab_run(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A cheap scenario with a cgroup and a worker, at work and recorded."""
    try:
        check(SCENARIOS["throttled"], 60, consent=False)
    except NodescopeError as error:
        pytest.skip(str(error))
    archive = tmp_path / "archive"
    command = [sys.executable, "-m", "nodescope.cli.main", "lab", "run", "throttled"]
    command += ["--record", str(archive), "--strength", "60"]
    # A shell that runs the tests in the background has Ctrl-C ignored, and that is inherited.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(command, preexec_fn=listen) as run:
        try:
            wait_for(lambda: "lab-busy" in comms(run), "the run is at work", process=run)
            assert cgroups(run)
            yield run
        finally:
            run.kill()
            run.wait()
            clean()


def processes(run: subprocess.Popen[bytes]) -> list[int]:
    """Every process that the run started, or that those did."""
    wanted = f"{MARK}={run.pid}.".encode()
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if any(each.startswith(wanted) for each in environ.read_bytes().split(b"\0")):
                found.append(int(environ.parent.name))
        except OSError:  # ended meanwhile
            continue
    return found


def comms(run: subprocess.Popen[bytes]) -> set[str]:
    found = set()
    for pid in processes(run):
        try:
            found.add(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:  # ended meanwhile
            continue
    return found


def cgroups(run: subprocess.Popen[bytes]) -> list[Path]:
    name = f"nodescope-lab-{run.pid}"
    hierarchies = Path("/sys/fs/cgroup")
    return [*hierarchies.glob(name), *hierarchies.glob(f"*/{name}")]


def ledgers(run: subprocess.Popen[bytes]) -> list[Path]:
    return list(LEDGERS.glob(f"nodescope-lab-{run.pid}*"))


@pytest.mark.slow
def test_what_a_killed_run_leaves_is_cleaned_up_with_its_recorder(
    lab_run: subprocess.Popen[bytes],
) -> None:
    children = processes(lab_run)
    assert len(children) >= 2  # the recorder and the worker
    lab_run.kill()
    lab_run.wait()
    assert all(read_start_time(pid) is not None for pid in children)
    done = subprocess.run(
        [sys.executable, "-m", "nodescope.cli.main", "lab", "clean"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert f"took down a run of process {lab_run.pid}\n" in done.stdout
    assert processes(lab_run) == []
    assert cgroups(lab_run) == []
    assert ledgers(lab_run) == []


@pytest.mark.slow
def test_a_run_that_is_asked_to_end_undoes_all(lab_run: subprocess.Popen[bytes]) -> None:
    os.kill(lab_run.pid, signal.SIGINT)
    assert lab_run.wait() == 128 + signal.SIGINT
    assert processes(lab_run) == []
    assert cgroups(lab_run) == []
    assert ledgers(lab_run) == []
