"""Run a scenario with the recorder beside it, and leave the truth beside the archive."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType

from nodescope.errors import UsageError
from nodescope.lab.ground import Ground
from nodescope.lab.processes import sleep_beside, wait_until_ready
from nodescope.lab.refusals import check
from nodescope.lab.scenario import Scenario, ScenarioRun, Truth
from nodescope.lab.truth_file import require_new, write_truth
from nodescope.lab.variation import Variation

BEFORE_S = 6.0  # what is usual, before anything happens
AFTER_S = 3.0
_ENDING = (signal.SIGTERM, signal.SIGHUP)


def run(
    scenario: Scenario,
    archive: Path,
    *,
    strength: int | None = None,
    healthy: bool = False,
    consent: bool = False,
    before_s: float = BEFORE_S,
    after_s: float = AFTER_S,
    seed: int | None = None,
    say: Callable[[str], None] = lambda message: None,
    then: Callable[[ScenarioRun], None] = lambda stage: None,
) -> Truth:
    """Prepare, record, act, and clean up whatever happens; refused where it could hurt.

    `seed` chooses names, limits and times; without one they are different each time. `then` is
    called while the recorder and all that was prepared still run.
    """
    strength = strength or scenario.strength
    check(scenario, strength, consent=consent)
    require_new(archive)
    with _ended_by_signals(), Ground() as ground:
        variation = Variation(time.time_ns() if seed is None else seed)
        stage = ScenarioRun(ground, strength, healthy, str(archive), say, variation)
        scenario.prepare(stage)
        if not healthy:  # the twin leaves nothing to wait for
            before_s = max(before_s, scenario.before_s)
        say(f"recording to {archive}, for {before_s:.0f} s before anything happens")
        recorder = _start_recorder(stage, archive)
        stage.lasting["the recorder"] = recorder
        try:
            sleep_beside(stage.lasting, before_s)
            say(scenario.help if not healthy else f"the healthy twin of: {scenario.help}")
            truth = scenario.act(stage)
            truth = replace(truth, facts={**truth.facts, "seed": variation.seed})
            sleep_beside(stage.lasting, after_s)
            then(stage)
        finally:
            recorder.terminate()
            code = recorder.wait()
        if code:
            raise UsageError(f"the recorder ended with exit code {code}")
    write_truth(archive, truth)
    return truth


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Whoever is asked to end takes down first what was made, as Ctrl-C does."""
    before = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # `nohup` means it
            signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)  # as a shell would say


def _start_recorder(stage: ScenarioRun, archive: Path) -> subprocess.Popen[bytes]:
    command = [
        *stage.recorder_in,
        sys.executable,
        "-m",
        "nodescope.cli.main",
        "record",
        "--archive",
        str(archive),
    ]
    process = stage.ground.start([*command, "--flush", "1s", "--quiet", *stage.recorder])
    wait_until_ready(
        process,
        "the recorder",
        lambda: any((archive / "open").glob("*/heartbeats.arrows")),
        hint="`nodescope doctor` says why",
    )
    return process
