"""Where zombies come from, by what loops beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodescope.analysis.window import SECOND_NS, Event, Window
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.origins import find_loopers, find_origins

_NOW = 100_000 * SECOND_NS
_CGROUP = "/system.slice/agent.service"
_UNIT = {
    "unit": "agent.service", "cgroup": _CGROUP, "main_pid": 7, "failures": 1, "successes": 0,
    "file_state": "enabled", "preset": "enabled", "vendor": "package agent",
    "wanted_by": "multi-user.target",
}  # fmt: skip


class _Recorded(Case):
    """A node on which a child fails inside a running unit, below which cgroups die."""

    def __init__(self, details: dict[str, Any]) -> None:
        super().__init__((), Window(0, _NOW + 1))
        self._event = Event(_NOW - 60 * SECOND_NS, "unit_hidden_loop", "agent.service",
                            "is active, but", None, details)  # fmt: skip

    def events_of(self, *kinds: str, within: Window | None = None) -> list[Event]:
        return [self._event] if self._event.kind in kinds else []

    def rows(self, table: str, window: Window) -> list[dict[str, Any]]:
        return []

    def state(self, table: str, keys: Sequence[str], at_ns: int) -> list[dict[str, Any]]:
        dying = {"path": _CGROUP, "kind": "file", "dying": 9000, "held_bytes": 4096}
        return {"units": [_UNIT], "dying_parents": [dying]}.get(table, [])


_DETAILS = {"child": "worker", "failed_ends": 5, "watched_s": 10.0, "ends": {"exit code 4": 5}}


def test_a_loop_inside_a_running_unit_explains_what_dies_below_it() -> None:
    (origin,) = find_origins(_Recorded(_DETAILS), _NOW, 9500, uptime_s=18_000)
    assert (origin.root.kind, origin.root.name) == ("unit", "agent.service")
    said = " ".join(link.statement for link in origin.links)
    assert "runs on, but its child worker failed 5 times in 10 s (exit code 4)" in said
    assert "every 2 s" in said
    assert origin.arithmetic is not None
    assert "are 9,000, against 9,500 zombies" in origin.arithmetic
    assert "unit_hidden_loop" in origin.links[1].show


def test_a_unit_of_the_same_name_elsewhere_is_not_blamed() -> None:
    guest = _DETAILS | {"cgroup": "/guest/system.slice/agent.service"}
    assert all(o.root.kind == "cgroup" for o in find_origins(_Recorded(guest), _NOW, 9500, 18_000))


def test_an_event_that_tells_too_little_is_no_loop() -> None:
    assert find_loopers(_Recorded({"child": "worker"}), _NOW) == []
    for nonsense in (2, -1, float("inf"), 10**400, "5", None):
        assert find_loopers(_Recorded(_DETAILS | {"failed_ends": nonsense}), _NOW) == []
