"""`make demo` without its set-up: it ends by itself, and names the cause."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from nodescope.lab import refusals
from nodescope.lab.in_service import CONSENT

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


@pytest.fixture
def demo() -> ModuleType:
    loader = SourceFileLoader("demo_run", str(DEMO))
    spec = importlib.util.spec_from_loader("demo_run", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_a_machine_that_serves_somebody_is_left_alone(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(refusals, "find_signs", lambda places: ["dockerd runs on it"])
    for name in ("DEMO_REPLAY", CONSENT):
        monkeypatch.delenv(name, raising=False)
    assert "serves somebody: dockerd runs on it" in demo.why_not_live()


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        ("no cgroups", "Not live (no cgroups): "),
        (None, "Not live (the lab failed with exit code 2, see above): "),
    ],
)
def test_it_falls_back(
    demo: ModuleType,
    refused: str | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[tuple[str, ...]] = []

    def show(*arguments: str) -> int:
        shown.append(arguments)
        return {"lab": 2, "diagnose": 1}.get(arguments[0], 0)

    monkeypatch.setattr(demo, "why_not_live", lambda: refused)
    monkeypatch.setattr(demo, "show", show)
    monkeypatch.setattr(demo, "serve_once", lambda archive: archive == str(demo.RECORDED))
    monkeypatch.setenv("DEMO_ONCE", "1")
    assert demo.main() == 0
    assert ("diagnose", "--archive", str(demo.RECORDED)) in shown
    assert said in capsys.readouterr().out
    assert demo.RECORDED.exists()
