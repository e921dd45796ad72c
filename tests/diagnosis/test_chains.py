"""Where a chain ends, and what it lacks there."""

from __future__ import annotations

from collections import Counter

import pytest

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.chains import _to_owner
from nodescope.diagnosis.finding import Link
from nodescope.diagnosis.story import Story
from nodescope.judgement.core_occupants import Occupants
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.view import View


class _Recorded(Case):
    """A process of a unit; what is known of units may be missing."""

    def __init__(self, observed: set[str]) -> None:
        super().__init__(Recording([]), Window(0, 10))
        self._seen = observed

    def observed(self, table: str) -> bool:
        return table in self._seen

    def cgroups_on(self, window: Window, cpu: int, comm: str) -> Occupants[str]:
        return Occupants(Counter({"/system.slice/builder.service": 9}))


@pytest.mark.parametrize(("observed", "missing"), [(set(), ["units"]), ({"units"}, [])])
def test_units_that_nobody_looked_at_are_missed_where_one_is_the_owner(
    observed: set[str], missing: list[str]
) -> None:
    story = Story([Link("task", "make", "make had it", 4.0, View("top"))], comm="make")
    story.held = PeggedCore(1, 2, 8, 0.99)
    (chain,) = _to_owner(_Recorded(observed), story)
    assert chain.root.title == "unit builder.service"
    assert [each.what for each in story.missing] == missing
    assert [step.view for step in chain.steps] == [chain.links[-1].show]
