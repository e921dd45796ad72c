"""What systemd writes of its units in logs of text."""

from __future__ import annotations

import pytest

from nodescope.ingest.unit_events import UnitEvents
from nodescope.records.event import Event
from nodescope.records.event_details import UnitRunDetails
from nodescope.sources.systemd.unit_texts import parse_unit_text

SECOND_NS = 10**9


def tell(*lines: str) -> list[Event]:
    units = UnitEvents()
    return [
        event
        for second, line in enumerate(lines)
        for event in units.take(second * SECOND_NS, parse_unit_text(line))
    ]


@pytest.mark.parametrize(
    ("line", "kind", "unit"),
    [
        ("a@1.service: Main process exited, code=exited, status=7/n/a", "exit", "a@1.service"),
        ("a.service: main process exited, code=killed, status=9/KILL", "exit", "a.service"),
        ("a.service: Failed with result 'oom-kill'.", "failed", "a.service"),
        ("Unit kubelet.service entered failed state.", "failed", "kubelet.service"),
        ("mnt-data.mount: Failed with result 'exit-code'.", "failed", "mnt-data.mount"),
        ("a.service: Scheduled restart job, restart counter is at 4.", "restart", "a.service"),
        ("a.service holdoff time over, scheduling restart.", "restart", "a.service"),
        (
            "a.service: Service RestartSec=100ms expired, scheduling restart.",
            "restart",
            "a.service",
        ),
        ("Started a.service - The A.", "started", "a.service"),
        ("Starting a.service...", "started", "a.service"),
        ("a.service: Deactivated successfully.", "exit", "a.service"),
        ("Failed to start a.service - The A.", "start_failed", "a.service"),
        ("Dependency failed for a.service - The A.", "start_failed", "a.service"),
    ],
)
def test_a_line_is_what_the_journals_entry_is(line: str, kind: str, unit: str) -> None:
    (event,) = tell(line)
    assert (event.kind, event.subject) == (f"unit_{kind}", unit)


@pytest.mark.parametrize(
    "line",
    [
        "Started Session 12 of user ops.",
        "Started Daily apt download activities.",
        "Reached target multi-user.target - Multi-User System.",
        "said: a.service: Failed with result 'exit-code'.",
        "a.service: Consumed 1.2s CPU time.",
    ],
)
def test_other_lines_tell_of_no_unit(line: str) -> None:
    assert parse_unit_text(line) == {}


def test_runs_are_numbered_so_that_a_loop_is_one() -> None:
    told = tell(
        *(
            line
            for count in range(1, 5)
            for line in (
                "Started a.service - The A.",
                "a.service: Main process exited, code=exited, status=7/n/a",
                "a.service: Failed with result 'exit-code'.",
                f"a.service: Scheduled restart job, restart counter is at {count}.",
            )
        )
    )
    kinds = [event.kind for event in told]
    assert kinds.count("unit_exit") == kinds.count("unit_failed") == 4
    assert kinds.count("unit_loop") == 1
    ran = {event.get(UnitRunDetails).ran_s for event in told if event.kind == "unit_exit"}
    assert ran == {1.0}
