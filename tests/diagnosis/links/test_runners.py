"""The unit behind a container: by evidence, never by a word that they share."""

from __future__ import annotations

from typing import Any

import pytest
from tests.diagnosis.made_node import NOW, Node, churn, ends, said_by, unit

from nodescope.diagnosis.finding import Root
from nodescope.diagnosis.links.origins import Origin, find_origins
from nodescope.quantities import SECOND_NS
from nodescope.records.event import Event
from nodescope.records.node_tables import ContainerRow, UnitRow

_ID = "3f2a" * 16
_UNITS = [unit("shop.service", main_pid=901), unit("cron.service", main_pid=902)]


def _origin(
    *events: Event,
    units: list[UnitRow] = _UNITS,
    cgroup: str = f"/docker/{_ID}",
    **made: Any,
) -> Origin:
    parent = cgroup.rpartition("/")[0]
    container = ContainerRow(
        time_ns=NOW - SECOND_NS, runtime="docker", name="shop-cache", id=_ID, cgroup=cgroup,
        cgroup_parent=parent,
    )  # fmt: skip
    node = Node(
        [*ends("shop-cache", 20, "container_exit"), *events], units,
        [churn("*", 40, 40, **{"parent": parent, "maker": "runc", "maker_pid": 4242, **made})],
        [container], place=parent,
    )  # fmt: skip
    return find_origins(node, NOW, node.zombies(9100, 180_000.0))[0][0]


def _why(origin: Origin) -> str:
    return next((link.statement for link in origin.links if link.kind == "why"), "")


def _source(origin: Origin) -> str:
    return next(link.statement for link in origin.links if link.kind == "source")


def test_a_word_in_common_is_a_hint_and_no_root() -> None:
    origin = _origin()
    assert origin.root == Root("container", "shop-cache")
    assert _why(origin) == ""
    assert _source(origin).endswith("; perhaps run by shop.service (by its name)")


def test_what_runs_everybodys_containers_is_not_even_a_hint() -> None:
    runtime = unit("docker.service", main_pid=4242, cgroup="/docker")
    node_units = [runtime, unit("kubelet.service")]
    origin = _origin(units=node_units, cgroup=f"/docker/{_ID}")
    assert origin.root == Root("container", "shop-cache")
    assert "perhaps" not in _source(origin)


def test_a_container_in_the_cgroup_of_a_unit_is_of_that_unit() -> None:
    origin = _origin(cgroup=f"/system.slice/cron.service/payload/{_ID}")
    assert origin.root == Root("unit", "cron.service")
    assert "which runs shop-cache (its cgroup lies in /system.slice/cron.service)" in _why(origin)


def test_a_unit_whose_process_makes_the_cgroups_runs_them() -> None:
    origin = _origin(maker_pid=902)
    assert origin.root == Root("unit", "cron.service")
    assert "its process 902 makes the cgroups" in _why(origin)


def _failing(name: str, **details: Any) -> Event:
    told: dict[str, Any] = {
        "child": "docker",
        "failed_ends": 5,
        "watched_s": 40.0,
        "ends": {"exit code 7": 5},
    }
    return said_by(name, "unit_hidden_loop", **told | details)


def test_a_unit_whose_child_names_the_container_runs_it() -> None:
    origin = _origin(_failing("cron.service", command="docker run --rm --name=shop-cache shop"))
    assert origin.root == Root("unit", "cron.service")
    assert "it runs `docker run --rm --name=shop-cache shop`" in _why(origin)
    other = _origin(_failing("cron.service", command="docker run --name shop-cache-2 shop"))
    assert other.root.kind == "container"
    itself = _origin(_failing("cron.service", command="shop-cache --serve"))
    assert itself.root.kind == "container"


def test_a_unit_whose_child_fails_as_often_and_in_the_same_way_runs_it() -> None:
    same = {"failed_ends": 5, "watched_s": 110.0, "ends": {"exit code 1": 5}}
    assert _origin(_failing("cron.service", **same)).root == Root("unit", "cron.service")
    assert _origin(_failing("cron.service", **same | {"watched_s": 10.0})).root.kind == "container"
    assert _origin(_failing("cron.service", **same | {"ends": {"signal 9": 5}})).root.kind == (
        "container"
    )


def _logging(name: str, *lines: str, last: str = "Agent exited with code 1") -> Event:
    return said_by(name, "unit_logs_ends", times=9, over_s=160.0, last_line=last, lines=list(lines))


def test_a_unit_whose_lines_name_the_id_runs_it() -> None:
    origin = _origin(_logging("cron.service", f"Removing existing container ID: {_ID}"))
    assert origin.root == Root("unit", "cron.service")
    assert "names the container's id and says `Agent exited with code 1`" in _why(origin)
    source = next(link for link in origin.links if link.kind == "source")
    assert source.show.kinds == ("container_exit", "unit_logs_ends")
    short = _origin(_logging("cron.service", f"container {_ID[:12]} is gone"))
    assert short.root == Root("unit", "cron.service")
    for line in ("Removing container ID: " + "0d" * 32, "Container name: /shop-cache", _ID[:11]):
        assert _origin(_logging("cron.service", line)).root.kind == "container"


def test_a_unit_that_says_the_container_ended_runs_it() -> None:
    last = 'container "shop-cache" exited with code 1'
    assert _origin(_logging("cron.service", last, last=last)).root == Root("unit", "cron.service")
    assert _origin(_logging("cron.service", "x", last="shop-cache-2 exited with code 1")).root == (
        Root("container", "shop-cache")
    )


def test_of_two_that_tell_of_it_alike_none_is_chosen_but_one_of_its_name() -> None:
    line = f"container {_ID} exited with code 1"
    watcher = unit("watcher.service")
    told = [_logging("watcher.service", line), _logging("cron.service", line)]
    assert _origin(*told, units=[*_UNITS, watcher]).root.kind == "container"
    told = [_logging("watcher.service", line), _logging("shop.service", line)]
    assert _origin(*told, units=[*_UNITS, watcher]).root == Root("unit", "shop.service")


@pytest.mark.parametrize("lines", [None, "text", [1, None]])
def test_lines_of_another_hand_do_no_harm(lines: object) -> None:
    event = said_by("cron.service", "unit_logs_ends", last_line=3, lines=lines)
    assert _origin(event).root.kind == "container"
