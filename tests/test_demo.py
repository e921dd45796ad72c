"""`make demo` without its set-up: it ends by itself, and names the cause."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "demo" / "run"
CAUSE = "cause: unit leaky.service"


def run_demo(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, DEMO],
        env=os.environ | {"DEMO_ONCE": "1"} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_recording_of_the_incident_is_diagnosed_and_served() -> None:
    said = run_demo(DEMO_REPLAY="1")
    assert CAUSE in said
    assert "$ nodescope serve" in said


@pytest.mark.live
@pytest.mark.root
@pytest.mark.slow
@pytest.mark.debian("systemd", "dbus")
def test_the_incident_is_made_and_its_cause_named() -> None:
    said = run_demo()
    if said.startswith("Not live"):
        pytest.skip(said.splitlines()[0])
    assert CAUSE in said
