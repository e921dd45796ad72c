from __future__ import annotations

import pytest

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.filling import FillingWatch
from nodescope.sources.limits.reading import Limit


def _look(percents: list[float], *, by_design: bool = False, seconds: int = 10) -> list[int]:
    """Return the readings at which the file system was reported."""
    watch = FillingWatch()
    return [
        at
        for at, percent in enumerate(percents)
        if watch.look(
            at * seconds * SECOND_NS,
            Limit("disk", "/", round(percent * 1000), 100_000),
            by_design=by_design,
        )
    ]


@pytest.mark.parametrize(
    ("percents", "reported"),
    [
        ([50, 70, 90, 99.5, 100], [3]),  # a rush, full before a pace is known
        ([90, 92, 93, 94, 95.5, 97, 98, 99.9], [4]),  # on the way
        ([96] * 40, []),  # steady, by design of whoever filled it
        ([99.6] * 40, []),  # full since before: no harm at a time that we saw
        ([100, 100], [0]),  # nothing at all is left
        ([50, 99.5, 80, 50, 99.5], [1, 4]),  # again, after it was cleared
        ([50, 99.5, 93, 99.5], [1]),  # not yet cleared
    ],
)
def test_when_a_disk_is_full(percents: list[float], reported: list[int]) -> None:
    assert _look(percents) == reported


def test_one_that_grows_by_a_little_a_day_is_not_full() -> None:
    assert _look([95.5 + at * 0.0003 for at in range(200)]) == []


def test_one_in_memory_may_be_full_from_the_start() -> None:
    assert _look([100] * 5, by_design=True) == []
    assert _look([10, 100], by_design=True) == [1]
