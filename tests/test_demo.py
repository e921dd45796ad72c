"""The demo where the incident cannot be made: the recording of an earlier run is diagnosed."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

RUN = Path(__file__).parents[1] / "demo/run"


@pytest.fixture
def demo() -> ModuleType:
    loader = SourceFileLoader("demo_run", str(RUN))
    spec = importlib.util.spec_from_loader("demo_run", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


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
