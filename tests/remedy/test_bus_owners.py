"""Owners of bus names, where two pid namespaces have the same numbers."""

from __future__ import annotations

from pathlib import Path

from nodescope.remedy.guard.socket_use import SocketReading
from nodescope.remedy.guard.unit_surroundings import NodeLook
from nodescope.sources.processes.process_table import ProcessSeen, index_processes
from nodescope.sources.systemd.bus_names import BusNames

_BUS = BusNames({40: ("org.example.A",)}, {"org.example.A": (41,)})


def _process(pid: int, inner: int, namespace: str, unit: str) -> ProcessSeen:
    return ProcessSeen(
        pid, 1, "x", (f"/system.slice/{unit}",), inner, None, frozenset(), frozenset(), namespace
    )


_OWNER = _process(1040, 40, "pid:[1]", "owner.service")
_TWIN = _process(2040, 40, "pid:[2]", "twin.service")
_PANEL = _process(1041, 41, "pid:[1]", "panel.service")
_STRANGER = _process(2041, 41, "pid:[2]", "stranger.service")


def _look(*processes: ProcessSeen, namespace: str | None = "pid:[1]") -> NodeLook:
    table = index_processes(processes)
    sockets = SocketReading(Path("/proc"), table, (), {})
    return NodeLook(Path("/proc"), table, sockets, "", _BUS, {}, namespace)


def test_the_same_number_in_another_namespace_is_another_process() -> None:
    look = _look(_OWNER, _TWIN, _PANEL, _STRANGER)
    assert look.names_of([_OWNER]) == (("org.example.A",), ("panel.service",))
    assert look.names_of([_TWIN]) == ((), ())
    assert look.names_unseen([_TWIN]) == ()  # the bus's only name is another's for certain


def test_names_that_may_be_anybodys_are_not_seen() -> None:
    assert _look(_TWIN, _PANEL).names_unseen([_TWIN])
    assert _look(_TWIN, _PANEL).names_unseen([_PANEL]) == ()
    hidden = _look(_OWNER, _PANEL, namespace=None)
    assert hidden.names_of([_OWNER]) == ((), ())
    assert hidden.names_unseen([_OWNER])
