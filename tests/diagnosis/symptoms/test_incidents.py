"""Which symptoms are one incident."""

from __future__ import annotations

from nodescope.diagnosis.finding import Symptom
from nodescope.diagnosis.symptoms.incidents import PEGGED_CORE, group
from nodescope.quantities import SECOND_NS
from nodescope.records.event_details import PeggedCoreDetails


def pegged(from_s: float, to_s: float, comm: str | None, cpu: int = 0) -> Symptom:
    return Symptom(
        PEGGED_CORE, round(to_s * SECOND_NS), f"cpu{cpu}", f"core {cpu} was pegged", cpu,
        round(from_s * SECOND_NS), PeggedCoreDetails(seconds=to_s - from_s, comm=comm),
    )  # fmt: skip


def test_a_core_pegged_by_two_processes_in_turn_is_two_incidents() -> None:
    """The first was blamed on the second, which had not started yet."""
    found = group([pegged(0, 2, "nodescope"), pegged(17, 28, "dd"), pegged(30, 38, "python3")])
    assert [[each.time_ns // SECOND_NS for each in one.symptoms] for one in found] == [
        [2], [28], [38],
    ]  # fmt: skip


def test_a_core_pegged_on_by_the_same_process_is_one_incident_named_by_the_longest() -> None:
    [found] = group([pegged(0, 2, "dd"), pegged(4, 12, "dd"), pegged(14, 17, None)])
    assert [each.time_ns // SECOND_NS for each in found.symptoms] == [12, 17, 2]


def test_two_cores_pegged_at_once_are_two_incidents() -> None:
    assert len(group([pegged(0, 5, "dd", 0), pegged(0, 5, "dd", 1)])) == 2
