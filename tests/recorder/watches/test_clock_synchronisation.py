from __future__ import annotations

from pathlib import Path

from nodescope.quantities import SECOND_NS
from nodescope.recorder.watches.clock_synchronisation import SynchronisationWatch
from nodescope.sources.limits.clock_state import ClockState
from nodescope.sources.places import Places

GOOD, BAD = ClockState(True, 500), ClockState(False, 16_000_000)


def _look(root: Path, states: list[ClockState]) -> list[tuple[int, str]]:
    """Look every minute."""
    watch = SynchronisationWatch(Places(root))
    answers = [watch.look(at * 60 * SECOND_NS, state) for at, state in enumerate(states)]
    return [(at, reason) for at, reason in enumerate(answers) if reason is not None]


def test_a_clock_that_nobody_sets_is_no_event(tmp_path: Path) -> None:
    assert _look(tmp_path, [BAD] * 60) == []


def test_a_service_that_does_not_manage_it_is_one(tmp_path: Path) -> None:
    (tmp_path / "run/chrony").mkdir(parents=True)
    ((at, reason),) = _look(tmp_path, [BAD] * 60)
    assert at == 10
    assert "chronyd" in reason


def test_a_clock_that_was_synchronised_before_is_one_at_once(tmp_path: Path) -> None:
    states = [GOOD, BAD, BAD, GOOD, BAD]
    assert [at for at, _ in _look(tmp_path, states)] == [1, 4]
