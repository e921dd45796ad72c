"""Where zombies come from, by what loops beside them and by what stays."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.diagnosis.made_node import NOW, SLICE, Node, churn, ends, said_by, unit

from nodescope.diagnosis.finding import Link, Root, RuledOut
from nodescope.diagnosis.links.origins import Origin, find_origins
from nodescope.quantities import SECOND_NS
from nodescope.records.node_tables import CgroupChurnRow, ContainerRow
from nodescope.records.view import View

_DETAILS: dict[str, Any] = {
    "child": "worker",
    "failed_ends": 5,
    "watched_s": 10.0,
    "ends": {"exit code 4": 5},
}
_AGENT = unit("agent.service", vendor="package agent")
_LEAKY, _INNOCENT = "slow-leaker.service", "innocent.service"
_UNITS = (unit(_LEAKY, failures=9050), unit(_INNOCENT, failures=8000))
_LOOPS = (*ends(_LEAKY, 150), *ends(_INNOCENT, 2))


def _ask(node: Node) -> tuple[list[Origin], list[RuledOut]]:
    return find_origins(node, NOW, node.zombies(9100, 540_000.0))


def _find(node: Node, dying: int = 9100, uptime_s: float = 540_000.0) -> list[Origin]:
    return find_origins(node, NOW, node.zombies(dying, uptime_s))[0]


def _said(origin: Origin) -> str:
    return " ".join(link.statement for link in origin.links)


def _source(origin: Origin) -> Link:
    return next(link for link in origin.links if link.kind == "source")


# -- one that loops ------------------------------------------------------------


def test_a_loop_inside_a_running_unit_explains_what_dies_below_it() -> None:
    loop = said_by("agent.service", "unit_hidden_loop", **_DETAILS)
    node = Node([loop], [_AGENT], place=f"{SLICE}/agent.service")
    (origin,) = _find(node, 9500, 18_000)
    assert (origin.root.kind, origin.root.name) == ("unit", "agent.service")
    assert "runs on, but its child worker failed 5 times in 10 s (exit code 4)" in _said(origin)
    assert "every 2 s" in _said(origin)
    assert origin.arithmetic is not None
    assert "are 9,000, against 9,500 zombies" in origin.arithmetic
    assert _source(origin).show.kinds == ("unit_hidden_loop",)


def test_a_unit_of_the_same_name_elsewhere_is_not_blamed() -> None:
    details = _DETAILS | {"cgroup": "/guest/system.slice/agent.service"}
    loop = said_by("agent.service", "unit_hidden_loop", **details)
    node = Node([loop], [_AGENT], place=f"{SLICE}/agent.service")
    assert [origin.root.kind for origin in _find(node)] == ["cgroup"]


def test_what_a_unit_makes_inside_its_own_cgroup_is_its_own() -> None:
    """Its children's cgroups bear other names than the unit."""
    place = f"{SLICE}/agent.service"
    loop = said_by("agent.service", "unit_hidden_loop", **_DETAILS)
    node = Node([loop], [_AGENT], [churn("job-*", 40, 40, parent=place)], place=place)
    (origin,) = _find(node)
    assert origin.root == Root("unit", "agent.service")
    assert "where 40 of 40 of its own stayed" in _said(origin)


def test_the_sum_takes_what_systemd_counts_where_less_was_seen() -> None:
    node = Node(ends(_LEAKY, 60), [unit(_LEAKY, failures=9, restarts=9000)])
    (origin,) = _find(node)
    assert "systemd restarted it 9,000 times, against 9,100 zombies" in _said(origin)


def test_what_was_removed_and_stays_is_of_the_hour_although_the_count_runs_on() -> None:
    """The recorder counts what stays since it began: that may be days."""
    rows = [
        churn(_LEAKY, 10, 1900, time_ns=NOW - 600 * SECOND_NS),
        churn(_LEAKY, 10, 1910, time_ns=NOW - 300 * SECOND_NS),
        churn(_LEAKY, 3, 1920, time_ns=NOW - 5 * SECOND_NS),
    ]
    (origin,) = _find(Node(ends(_LEAKY, 60), [_UNITS[0]], rows))
    assert "23 were removed there" in _said(origin)
    assert "before, 20 of them not released after 15 s" in _said(origin)


# -- several that loop ---------------------------------------------------------


def test_the_one_whose_cgroups_stay_is_named_and_the_other_ruled_out() -> None:
    rows = [churn(_LEAKY, 24, 24), churn(_INNOCENT, 1800, 0)]
    origins, ruled_out = _ask(Node(_LOOPS, _UNITS, rows))
    assert [origin.root.name for origin in origins] == [_LEAKY]
    assert "most of what stays was made by systemd as slow-leaker.service" in _said(origins[0])
    assert "where 24 of 24 of its own stayed" in _said(origins[0])
    (innocent,) = ruled_out
    assert innocent.name == f"unit {_INNOCENT}"
    assert "ended 1800 times" in innocent.statement
    assert "ruled out because none of its own cgroups stayed: all 1,800" in innocent.statement
    assert innocent.show is not None
    assert (innocent.show.table, innocent.show.where) == (
        "cgroup_churn",
        (("pattern", "innocent.service"),),
    )


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [churn(_LEAKY, 24, None, maker=None), churn(_INNOCENT, 1800, None, maker=None)],
        [churn(name, 9, 0, time_ns=NOW - 20 * SECOND_NS) for name in (_LEAKY, _INNOCENT)],
    ],
    ids=["nobody looked", "directories were compared", "none is old enough"],
)
def test_those_that_cannot_be_told_apart_are_told_as_such(rows: list[CgroupChurnRow]) -> None:
    origins, ruled_out = _ask(Node(_LOOPS, _UNITS, rows))
    assert ruled_out == []
    assert {origin.root.name for origin in origins} == {_LEAKY, _INNOCENT}
    one, other = origins
    assert one.score == other.score
    assert _source(one).probability == pytest.approx(0.5)
    for origin, rival in ((one, other), (other, one)):
        assert f"nothing that was recorded tells it from {rival.root.name}" in _said(origin)


def test_how_often_it_loops_does_not_tell_two_apart() -> None:
    """Nor where what stays is somebody else's, and little speaks for either."""
    events = [*ends(_LEAKY, 1200), *ends(_INNOCENT, 2)]
    units = (unit(_LEAKY, failures=1), unit(_INNOCENT, failures=1))
    found = _find(Node(events, units, [churn("session-*.scope", 40, 40)]))
    strengths = {_source(origin).strength for origin in found if origin.root.kind == "unit"}
    assert len(strengths) == 1


def test_a_pattern_that_two_share_tells_nothing_of_either() -> None:
    containers = [
        ContainerRow(time_ns=NOW - 10, runtime="docker", name=name, id=letter * 64,
                     cgroup_parent=SLICE, cgroup=f"{SLICE}/docker-{letter * 60}1234.scope")
        for name, letter in (("web", "a"), ("db", "b"))
    ]  # fmt: skip
    events = [*ends("web", 60, "container_exit"), *ends("db", 60, "container_exit")]
    node = Node(events, [], [churn("docker-*.scope", 60, 60)], containers)
    origins, ruled_out = _ask(node)
    assert {origin.root.name for origin in origins} == {"web", "db"}
    assert len({origin.score for origin in origins}) == 1
    assert ruled_out == []


def test_a_cgroup_that_lingers_makes_nobody_guilty() -> None:
    """One of thousands stays for a while: the other is named by what it leaves."""
    rows = [churn(_LEAKY, 24, 24), churn(_INNOCENT, 1800, 1)]
    origins, ruled_out = _ask(Node(_LOOPS, _UNITS, rows))
    assert [origin.root.name for origin in origins] == [_LEAKY, _INNOCENT]
    assert _source(origins[0]).probability > 0.9
    assert _source(origins[1]).probability < 0.1
    assert ruled_out == []


def test_what_stays_of_nobody_who_loops_is_told_first() -> None:
    rows = [churn("session-*.scope", 40, 40, maker="sshd")]
    first, second = _find(Node(ends(_INNOCENT, 20), [_UNITS[1]], rows))
    assert first.root == Root("cgroup", SLICE)
    assert "made by sshd as session-*.scope" in _said(first)
    assert second.root.name == _INNOCENT


def test_one_that_is_innocent_in_the_only_place_leaves_the_place() -> None:
    node = Node(ends(_INNOCENT, 2), [_UNITS[1]], [churn(_INNOCENT, 1800, 0)])
    (origin,), (innocent,) = _ask(node)
    assert origin.root == Root("cgroup", SLICE)
    assert _INNOCENT in innocent.statement


def test_the_arithmetic_tells_two_apart_where_nothing_else_does() -> None:
    units = (unit(_LEAKY, failures=9050), unit(_INNOCENT, failures=80))
    one, other = _find(Node(_LOOPS, units))
    assert (one.root.name, other.root.name) == (_LEAKY, _INNOCENT)
    assert _source(one).probability > 0.9
    assert "nothing that was recorded tells it" not in _said(one)


def test_a_place_inside_another_unit_is_not_a_containers() -> None:
    """Docker's parent is the slice: what lies in the slice beside it is not docker's."""
    container = ContainerRow(
        time_ns=NOW - 10, runtime="docker", name="web", id="a1" * 32, cgroup_parent=SLICE
    )
    node = Node(ends("web", 60, "container_exit", cgroup_parent=SLICE), [], [], [container],
                place=f"{SLICE}/other.service")  # fmt: skip
    assert [origin.root.kind for origin in _find(node)] == ["cgroup"]


# -- the order -----------------------------------------------------------------


def _link(kind: str, strength: float) -> Link:
    return Link(kind, "x", "x", strength, View("status"))


def test_the_links_that_decide_make_the_order_the_others_only_break_ties() -> None:
    def score(*links: Link) -> tuple[float, float]:
        return Origin(links, Root("unit", "x"), None).score

    sure = score(_link("parent", 3.0), _link("source", 3.0))
    assert sure > score(_link("parent", 6.0), _link("source", 2.0), _link("why", 2.5))
    assert sure > score(_link("parent", 3.0), _link("source", 3.0), _link("why", 2.5))
    assert math.isclose(sure[0], _link("parent", 3.0).probability ** 2)


def test_a_unit_of_which_less_is_known_is_not_below_for_that() -> None:
    """One chain has a link more, and so a greater sum: it is not surer."""
    events = []
    for name in ("known.service", "unknown.service"):
        failing = said_by(
            name, "unit_child_failing", failed_ends=3, watched_s=60.0, cgroup=f"{SLICE}/{name}"
        )
        events += [*ends(name, 20), failing]
    first, second = _find(Node(events, [unit("known.service")]))
    assert first.root.name == "unknown.service"
    assert math.prod(link.probability for link in first.links) > math.prod(
        link.probability for link in second.links
    )


def test_of_many_that_are_innocent_those_that_end_most_are_named() -> None:
    names = [f"{letter}.service" for letter in "abcdef"]
    events = [end for at, name in enumerate(names) for end in ends(name, 20 + at)]
    node = Node(events, [unit(name) for name in names], [churn(name, 60, 0) for name in names])
    _, ruled_out = _ask(node)
    assert [each.name for each in ruled_out] == [f"unit {name}" for name in names[:3]]


# -- makers that are known by their own cgroup --------------------------------------


_SCRIPT = unit("script.service", vendor="administrator")


def _made(count: int, by: str | None, pattern: str = "job-*", **more: Any) -> CgroupChurnRow:
    return churn(pattern, count, count, maker="mkdir", maker_pid=None, maker_cgroup=by, **more)


@pytest.mark.parametrize("place", [SLICE, "/batch.slice", "/", "/somebody.slice/else.service"])
def test_the_unit_whose_processes_make_them_is_named_wherever_they_lie(place: str) -> None:
    rows = [_made(120, f"{SLICE}/script.service", parent=place)]
    (origin,) = _find(Node([], [_SCRIPT], rows, place=place))
    assert origin.root == Root("unit", "script.service")
    assert f"saw mkdir in {SLICE}/script.service make 120" in _said(origin)
    assert [link.kind for link in origin.links] == ["parent", "source", "why"]
    shown = _source(origin).show
    assert (shown.table, shown.where) == (
        "cgroup_churn",
        (("maker_cgroup", f"{SLICE}/script.service"),),
    )


def test_what_loops_beside_it_is_not_blamed_for_what_another_is_known_to_make() -> None:
    rows = [_made(120, f"{SLICE}/script.service")]
    (origin,) = _find(Node(ends(_INNOCENT, 20), [*_UNITS, _SCRIPT], rows))
    assert origin.root == Root("unit", "script.service")


def test_a_unit_that_loops_and_makes_cgroups_beside_its_own_is_one_origin() -> None:
    rows = [_made(120, f"{SLICE}/{_LEAKY}"), churn(_LEAKY, 24, 0)]
    (origin,) = _find(Node(ends(_LEAKY, 150), [_UNITS[0]], rows))
    assert origin.root == Root("unit", _LEAKY)
    assert "of its own stayed" in _said(origin)


def test_a_maker_inside_a_container_leads_to_the_container() -> None:
    by = f"/system.slice/docker-{'ab' * 32}.scope/inner"
    (origin,) = _find(Node([], [], [_made(120, by, parent="/")], place="/"))
    assert (origin.root.kind, origin.root.name) == ("container", "ab" * 6)


@pytest.mark.parametrize(
    "by", [None, "/", "/init.scope", "/user.slice/user-0.slice/session-1.scope",
           f"{SLICE}/containerd.service", f"{SLICE}/kubelet.service"],
)  # fmt: skip
def test_a_maker_that_is_nobody_in_particular_leaves_the_place(by: str | None) -> None:
    (origin,) = _find(Node([], [_SCRIPT], [_made(120, by)]))
    assert origin.root == Root("cgroup", SLICE)


def test_where_several_make_what_stays_none_is_certain() -> None:
    one, other = f"{SLICE}/script.service", f"{SLICE}/other.service"
    rows = [_made(60, one), _made(60, other, "run-*")]
    (origin,) = _find(Node([], [_SCRIPT], rows))
    assert origin.root == Root("cgroup", SLICE)
