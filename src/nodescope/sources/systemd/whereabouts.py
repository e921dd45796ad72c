"""Which root the units of a systemd belong to, when it is not this machine's own."""

from __future__ import annotations

from pathlib import Path

from nodescope.sources.places import Places

_BUS = "/run/dbus/system_bus_socket"
_JOURNALS = ("/var/log/journal", "/run/log/journal")


def unit_root(places: Places) -> Path | None:
    """The root below which its unit files lie; None if that cannot be told.

    A bus or a journal that was pointed at may be another system's: its unit
    files are then looked for where that system has its root, not in ours.
    """
    if places.systemd_bus is None and places.journal is None:
        return places.root
    for path, endings in _given(places):
        for ending in endings:
            root, found, rest = path.partition(ending)
            if found and (not rest or rest.startswith("/")):
                return Path(root or "/")
    return None if places.root == Path("/") else places.root


def _given(places: Places) -> list[tuple[str, tuple[str, ...]]]:
    given: list[tuple[str, tuple[str, ...]]] = []
    if places.systemd_bus is not None:
        given.append((places.systemd_bus.partition("unix:path=")[2] or places.systemd_bus, (_BUS,)))
    if places.journal is not None:
        given.append((str(places.journal), _JOURNALS))
    return given
