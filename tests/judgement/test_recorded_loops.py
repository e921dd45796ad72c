"""What ends and is started again, as it was known at a moment."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.diagnosis.made_node import NOW, Node, ends, said_by, unit

from nodescope.diagnosis.links.loops_in_words import describe_ends
from nodescope.judgement.recorded_loops import (
    END_KINDS,
    HIDDEN_KINDS,
    Looper,
    find_recorded_loops,
    reach_of,
)
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.node_tables import ContainerRow, UnitRow

_DETAILS: dict[str, Any] = {
    "child": "worker", "failed_ends": 5, "watched_s": 10.0, "ends": {"exit code 4": 5},
}  # fmt: skip


def _find(node: Node) -> list[Looper]:
    events = node.events_of(*END_KINDS, *HIDDEN_KINDS, within=reach_of(NOW))
    rows = node.rows(ContainerRow, Window(NOW - 3600 * SECOND_NS, NOW + SECOND_NS))
    return find_recorded_loops(events, rows, node.state(UnitRow, NOW), NOW)


def _said(node: Node) -> str:
    (looper,) = _find(node)
    return describe_ends(node, looper)


def test_an_event_that_tells_too_little_is_no_loop() -> None:
    for nonsense in (2, -1, float("inf"), 10**400, "5", None):
        loop = said_by("agent.service", "unit_hidden_loop", **_DETAILS | {"failed_ends": nonsense})
        assert _find(Node([loop])) == []
    assert _find(Node([said_by("a.service", "unit_hidden_loop", child="x")])) == []


def test_ends_after_the_moment_show_a_loop_but_are_not_counted() -> None:
    node = Node(ends("agent.service", 10, since_s=10, until_s=50))
    (looper,) = _find(node)
    assert len(looper.times) == 6
    assert (looper.count, looper.period_s) == (2, 10)  # ten seconds before, and right then
    assert _said(node).startswith("ended 2 times in the hour before (exit 1)")


def test_how_they_end_is_of_the_time_before() -> None:
    later = ends("agent.service", 10, since_s=-10, until_s=50, exit_status=9)
    assert later[0].time_ns > NOW
    node = Node([*ends("agent.service", 10, since_s=40), *later])
    assert _said(node) == "ended 4 times in the hour before (exit 1)"


def test_what_begins_after_the_moment_has_made_nothing_by_then() -> None:
    node = Node(ends("agent.service", 10, since_s=-5, until_s=55))
    assert _find(node) == []


def test_a_hidden_loop_is_told_as_it_was_heard_up_to_the_moment() -> None:
    before = said_by("agent.service", "unit_hidden_loop", **_DETAILS)
    after = said_by("agent.service", "unit_child_failing", -60, **_DETAILS | {"failed_ends": 50})
    assert "failed 5 times in 10 s (exit code 4)" in _said(Node([before, after]))
    assert "later" not in _said(Node([before, after]))


def test_a_hidden_loop_that_was_heard_only_later_says_so() -> None:
    after = said_by("agent.service", "unit_hidden_loop", -60, **_DETAILS)
    more = said_by("agent.service", "unit_child_failing", -90, **_DETAILS | {"failed_ends": 50})
    assert _said(Node([after, more])).endswith("(exit code 4), as was heard 1m later")


@pytest.mark.parametrize(
    ("place", "stands"),
    [
        ("/system.slice", True),
        ("/system.slice/agent.service", True),
        ("/system.slice/agent.service/jobs", True),
        ("/system.slice/agent.service.d", False),
        ("/user.slice", False),
        ("/", False),
    ],
)
def test_where_a_unit_stands(place: str, stands: bool) -> None:
    node = Node(ends("agent.service", 10), [unit("agent.service")])
    (looper,) = _find(node)
    assert looper.stands_in(place) is stands


def test_the_root_is_nobodys_own() -> None:
    looper = Looper("container", "web", NOW)
    looper.lies("/")
    looper.lies(None)
    assert looper.cgroups == set()
    assert math.isinf(looper.period_s)


def test_ids_that_came_later_are_not_counted() -> None:
    events = ends("web", 10, "container_exit", since_s=60, id="a1" * 32)
    events += ends("web", 10, "container_exit", since_s=-10, until_s=40, id="b2" * 32)
    (looper,) = _find(Node(events))
    assert looper.ids == {"a1" * 32}
    assert max(looper.times) > NOW + 20 * SECOND_NS
