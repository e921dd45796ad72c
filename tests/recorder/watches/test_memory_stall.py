from __future__ import annotations

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.memory_stall import MemoryStallWatch
from nodescope.records.trouble_details import FullTableDetails


def _look(shares: list[float]) -> list[int]:
    """Return the readings, two seconds apart, at which pressure was reported."""
    watch = MemoryStallWatch()
    total_us, reported = 0.0, []
    for at, share in enumerate(shares):
        total_us += share * 2_000_000
        if watch.look(at * 2 * SECOND_NS, int(total_us)):
            reported.append(at)
    return reported


def test_a_fifth_of_a_minute_is_an_event_once() -> None:
    assert _look([0.25] * 100) == [30]
    assert _look([0.15] * 100) == []


def test_a_burst_of_seconds_is_none() -> None:
    assert _look([0.0] * 40 + [1.0] * 5 + [0.0] * 40) == []


def test_it_is_one_again_after_it_fell() -> None:
    assert len(_look([0.5] * 40 + [0.0] * 40 + [0.5] * 40)) == 2


def test_it_tells_how_much() -> None:
    watch = MemoryStallWatch()
    watch.look(0, 1_000_000)
    (event,) = watch.look(60 * SECOND_NS, 31_000_000)
    assert "50%" in event.message
    details = event.get(FullTableDetails)
    assert (details.before, details.value, details.within_s) == (1_000_000, 31_000_000, 60.0)
