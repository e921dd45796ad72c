"""Cores that lock up together: a machine that stood still, or several busy cores."""

from __future__ import annotations

import pytest

from nodescope.diagnosis.finding import Symptom
from nodescope.diagnosis.symptoms.standstill import MACHINE, join_standstills
from nodescope.quantities import SECOND_NS
from nodescope.records.event_details import SoftLockupDetails


def lockup(second: float, cpu: int, comm: str, stuck_s: int = 41) -> Symptom:
    details = SoftLockupDetails(stuck_s=stuck_s, comm=comm, pid=7)
    time_ns = round(second * SECOND_NS)
    return Symptom("soft_lockup", time_ns, f"cpu{cpu}", "stuck", cpu, None, details)


CLOCK = Symptom("clocksource_unstable", 0, "tsc", "unstable")
IDLE = [lockup(0, 0, "postgres"), lockup(0.4, 1, "redis"), lockup(1.2, 2, "swapper/2")]


def test_an_idle_core_among_them_makes_it_the_machines() -> None:
    (joined,) = join_standstills(IDLE)
    assert joined.subject == MACHINE
    assert joined.cpu is None
    assert joined.statement == "3 cores (0-2) did not run for 41 s, all at the same time"


def test_so_does_a_clock_that_is_given_up() -> None:
    found = join_standstills([CLOCK, *IDLE[:2]])
    assert [each.subject for each in found] == ["tsc", MACHINE]


@pytest.mark.parametrize(
    "symptoms",
    [
        IDLE[:2],  # two busy cores may contend for a lock
        [IDLE[0], lockup(20, 2, "swapper/2")],
        [IDLE[0], lockup(0.1, 2, "swapper/2", stuck_s=22)],
        [lockup(0, 3, "swapper/3"), lockup(1, 3, "swapper/3")],
    ],
    ids=["busy", "later", "another-length", "one-core"],
)
def test_others_stay_what_they_are(symptoms: list[Symptom]) -> None:
    assert join_standstills(symptoms) == symptoms
