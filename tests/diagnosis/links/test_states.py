"""Counters that people suspect first: compared with what there is, and ruled out with a reason."""

from __future__ import annotations

import pytest

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.links.states import rule_out_rises, zombie_link
from nodescope.judgement.zombie_reading import ZombieReading, read_zombies
from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.window import Window
from nodescope.records.node_tables import MemoryCgroupsRow, MemoryRow

_START = 50_000 * SECOND_NS
_HELD = Window(_START + 42 * SECOND_NS, _START + 48 * SECOND_NS)


def _recorded(readings: dict[int, int], name: str = "pgfault") -> Case:
    """A counter as it was read: seconds since the start, and its value."""
    rows = [
        MemoryRow(time_ns=_START + second * SECOND_NS, name=name, value=value)
        for second, value in readings.items()
    ]
    return Case(recording_of(rows), Window(_START, _START + 60 * SECOND_NS))


def _said(readings: dict[int, int], share: float = 0.0, name: str = "pgfault") -> list[str]:
    found = rule_out_rises(_recorded(readings, name), _HELD, {"page faults": share})
    return [each.statement for each in found]


NONE = "none of the core's kernel samples is of it"
SOME = "only 2% of the core's kernel samples is of it"


@pytest.mark.parametrize(
    ("readings", "share", "seen", "because"),
    [
        ({0: 0, 10: 1000, 20: 2000, 30: 3000, 40: 4000, 50: 5200}, 0.0,
         " rose 1.2× against the 40 s before", f"that is not even double, and {NONE}"),
        ({0: 0, 10: 100, 40: 400, 50: 1000}, 0.02, " rose 6.0× against the 40 s before", SOME),
        ({38: 0, 41: 300, 50: 1200}, 0.0,
         " did not rise against the 3 s before", "that is no more than usual"),
        ({0: 7, 40: 7, 50: 107}, 0.0, " began, 10.0 a second against the 40 s before", NONE),
        ({40: 0, 50: 10}, 0.0, ": not compared, as its counter was not read twice before", NONE),
        ({38: 0, 40: 0, 50: 10}, 0.0,
         ": not compared, as its counter was read for only 2 s before", NONE),
    ],
)  # fmt: skip
def test_a_suspect_is_ruled_out_because(
    readings: dict[int, int], share: float, seen: str, because: str
) -> None:
    assert _said(readings, share) == [f"page faults{seen}; ruled out because {because}"]


def test_what_holds_the_core_is_not_ruled_out() -> None:
    assert _said({0: 0, 40: 400, 50: 1000}, share=0.5) == []


def test_what_never_happened_is_not_spoken_of() -> None:
    assert _said({0: 3, 40: 3, 50: 3}) == []
    assert _said({0: 0, 40: 400, 50: 1000}, name="nr_dirtied") == []
    assert _said({50: 3}) == []


def _counted(counts: dict[int, int]) -> Case:
    """Memory cgroups as they were counted: seconds since the start, and how many were dying."""
    rows = [
        MemoryCgroupsRow(time_ns=_START + second * SECOND_NS, version="v1", tracked=dying + 240,
                         visible=240, dying=dying)
        for second, dying in counts.items()
    ]  # fmt: skip
    return Case(recording_of(rows), Window(_START, _START + 3600 * SECOND_NS))


def test_zombies_are_those_of_the_moment_not_of_later() -> None:
    case = _counted({600: 68_439, 610: 68_440, 620: 68_444, 700: 69_000})
    zombies = read_zombies(case.recording, _START + 615 * SECOND_NS)
    assert isinstance(zombies, ZombieReading)
    assert (zombies.tracked, zombies.visible, zombies.dying) == (68_680, 240, 68_440)
    link = zombie_link(zombies, _START + 615 * SECOND_NS)
    assert link.subject == "68,440 zombie memory cgroups"
    assert link.statement == (
        "the kernel tracks 68,680 memory cgroups, of which 240 exist: 68,440 were removed and "
        "are still walked"
    )


def test_a_count_of_long_before_says_so() -> None:
    at_ns = _START + 600 * SECOND_NS
    zombies = read_zombies(_counted({0: 68_000}).recording, at_ns)
    assert isinstance(zombies, ZombieReading)
    assert zombie_link(zombies, at_ns).statement.endswith("still walked, as counted 10m before")
