"""Names on the system bus: which process has them, and who listens for what they announce.

Whom a client calls is not visible without eavesdropping. Its match rules are, to root, where
the bus keeps statistics (`org.freedesktop.DBus.Debug.Stats`): a client that asked for the
signals of a name uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodescope.errors import SourceAbsent, SourceError
from nodescope.wire.dbus import Bus, Call

_BUS = "org.freedesktop.DBus"
_PATH = "/org/freedesktop/DBus"
_STATS = "org.freedesktop.DBus.Debug.Stats"
_SENDER = re.compile(r"sender='([^']+)'")
_MAX_NAMES = 4096


@dataclass(frozen=True, slots=True)
class BusNames:
    """The names of one bus; processes by their number in the pid namespace of the bus."""

    by_process: Mapping[int, tuple[str, ...]]  # well-known names alone
    watchers: Mapping[str, tuple[int, ...]] | None  # name → processes; None: cannot be seen


def read_bus_names(address: str) -> BusNames:
    """Ask the bus who has which name; `SourceError` where there is no bus to ask."""
    bus = Bus(address, _BUS)
    try:
        if bus.direct:
            raise SourceAbsent(address, "systemd's private socket is no bus: it has no names")
        (names,) = bus.call(Call(_PATH, _BUS, "ListNames"))
        names = [name for name in names[:_MAX_NAMES] if name != _BUS]
        pids = _read_processes(bus, names)
        return BusNames(_by_process(pids), _read_watchers(bus, pids))
    finally:
        bus.close()


def _read_processes(bus: Bus, names: list[str]) -> dict[str, int]:
    answers = bus.call_all(
        [Call(_PATH, _BUS, "GetConnectionUnixProcessID", "s", (name,)) for name in names]
    )
    return {
        name: answer[0]
        for name, answer in zip(names, answers, strict=True)
        if not isinstance(answer, SourceError)  # it left the bus meanwhile
    }


def _by_process(pids: Mapping[str, int]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for name, pid in pids.items():
        if not name.startswith(":"):
            found[pid] = (*found.get(pid, ()), name)
    return found


def _read_watchers(bus: Bus, pids: Mapping[str, int]) -> dict[str, tuple[int, ...]] | None:
    try:
        (rules,) = bus.call(Call(_PATH, _STATS, "GetAllMatchRules"))
    except SourceError:
        return None  # built without statistics, or not for us
    return parse_watchers(rules, pids)


def parse_watchers(
    rules: Mapping[str, Iterable[str]], pids: Mapping[str, int]
) -> dict[str, tuple[int, ...]]:
    """Return which processes asked for signals of each name, from their match rules."""
    found: dict[str, set[int]] = {}
    for client, asked in rules.items():
        for sender in {match[1] for rule in asked if (match := _SENDER.search(rule))}:
            if client in pids:
                found.setdefault(sender, set()).add(pids[client])
    return {name: tuple(sorted(each)) for name, each in found.items()}
