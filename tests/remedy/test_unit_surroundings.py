from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nodescope.remedy.guard import unit_surroundings
from nodescope.remedy.guard.unit_surroundings import read_unit_surroundings


def _read(monkeypatch: pytest.MonkeyPatch, pids: list[int], looks: list[tuple[str, ...]]) -> Any:
    """Read a unit whose main process and unseen parts are these, one reading after another."""
    monkeypatch.setattr(
        unit_surroundings, "_read_run", lambda _name, _node: (pids.pop(0), "run", 1)
    )
    monkeypatch.setattr(
        unit_surroundings, "_read_once", lambda _name, _node: SimpleNamespace(unseen=looks.pop(0))
    )
    return read_unit_surroundings("loops.service", None)  # type: ignore[arg-type]


def test_a_process_that_came_and_went_during_the_look_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _read(monkeypatch, [0, 0, 0], [("its processes",), ()]).unseen == ()


def test_a_process_that_stays_and_is_not_seen_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _read(monkeypatch, [7, 7], [("its processes",)]).unseen == ("its processes",)
