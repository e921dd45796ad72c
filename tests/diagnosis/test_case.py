"""What a case knows of beyond its window."""

from __future__ import annotations

from typing import Any

from nodescope.diagnosis.case import Case
from nodescope.recording.window import Window


class _Asked(Case):
    """A recording whose observers had nothing to tell."""

    def rows(self, table: str, window: Window) -> list[dict[str, Any]]:
        return [{"source": "kernel_log"}] if table == "source_costs" else []


def test_an_observer_that_had_nothing_to_tell_is_not_missing() -> None:
    case = _Asked((), Window(0, 10))
    assert case.observed("kernel_log")
    assert not case.observed("units")
    assert not case.recorded("kernel_log")
