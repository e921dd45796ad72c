"""The surroundings of a unit or container, as facts: who would miss it.

`unit_surroundings` and `container_surroundings` read them, `guard` decides on them. They are
plain data, so that those of a real node can be stored and judged again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Client:
    """Somebody who is connected to a socket of the subject."""

    at: str  # `tcp:22`, `unix:/run/docker.sock`
    who: str  # a unit, a container, another machine's address, or a process
    count: int = 1


@dataclass(frozen=True, slots=True)
class SocketUse:
    """The sockets of a group of processes."""

    listens: tuple[str, ...] = ()
    clients: tuple[Client, ...] = ()
    reaches: tuple[str, ...] = ()  # addresses on other machines that it is connected to
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The facts by which the guard decides; what could not be read stands in `unseen`."""

    name: str
    kind: Literal["unit", "container"]
    state: str  # `active`, `failed`, `running`, …; empty: not known
    loops: bool = False  # it ends and is started again
    stops_with: tuple[str, ...] = ()  # units in use that systemd stops with it
    provides: tuple[str, ...] = ()  # targets by which systemd knows its role
    listens: tuple[str, ...] = ()
    clients: tuple[Client, ...] = ()
    reaches: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()  # file systems that its processes answer for
    bus_names: tuple[str, ...] = ()
    watchers: tuple[str, ...] = ()  # who asked for the signals of its bus names
    runs_inside: tuple[str, ...] = ()  # containers, pods and sessions that it keeps
    shared_by: tuple[str, ...] = ()  # containers that use its namespaces or volumes
    programs: tuple[str, ...] = ()  # names of its processes
    ours: str = ""  # in which way it is ourselves
    declared: str = ""  # where it is declared, if not on this node
    unseen: tuple[str, ...] = ()  # what could not be looked at, and why

    @property
    def runs_well(self) -> bool:
        """Return whether it runs and does not loop."""
        return self.state in ("active", "reloading", "running", "paused") and not self.loops
