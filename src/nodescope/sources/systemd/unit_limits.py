"""Limits of a unit as systemd has them: `MemoryMax`, `TasksMax` and others of its cgroup."""

from __future__ import annotations

from nodescope.errors import SourceError
from nodescope.sources.systemd.manager import Manager, escape_path
from nodescope.wire.dbus import Call

NO_LIMIT = (1 << 64) - 1
_UNIT_PATH = "/org/freedesktop/systemd1/unit/"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_INTERFACES = {
    "service": "org.freedesktop.systemd1.Service",
    "slice": "org.freedesktop.systemd1.Slice",
    "scope": "org.freedesktop.systemd1.Scope",
    "socket": "org.freedesktop.systemd1.Socket",
}


def read_unit_limit(manager: Manager, unit: str, name: str) -> int | None:
    """Return a limit of a unit; None where it has none, or cannot have one."""
    interface = _INTERFACES.get(unit.rpartition(".")[2])
    if interface is None:
        return None
    path = _UNIT_PATH + escape_path(unit)
    try:
        ((_, value),) = manager.bus.call(Call(path, _PROPERTIES, "Get", "ss", (interface, name)))
    except SourceError:
        return None  # this systemd knows no such limit
    return value if isinstance(value, int) and 0 < value < NO_LIMIT else None
