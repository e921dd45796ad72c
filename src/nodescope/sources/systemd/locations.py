"""Where a systemd's bus, journal and unit files are, when it is not this machine's own.

A bus or a journal that is pointed at by hand may be another system's. The rest
of that system is then looked for below the root it belongs to, never in ours:
two systems must not be told as one.
"""

from __future__ import annotations

from pathlib import Path

from nodescope.sources.places import Places

_BUS = "/run/dbus/system_bus_socket"
_PRIVATE = "/run/systemd/private"
_JOURNALS = ("/var/log/journal", "/run/log/journal")


def unit_root(places: Places) -> Path | None:
    """The root below which its files lie; None if that cannot be told."""
    if places.systemd_bus is None and places.journal is None:
        return places.root
    for path, endings in _given(places):
        for ending in endings:
            root, found, rest = path.partition(ending)
            if found and (not rest or rest.startswith("/")):
                return Path(root or "/")
    return None if places.root == Path("/") else places.root


def bus_addresses(places: Places) -> list[str]:
    """Where to ask, first choice first: the address given, or the sockets of its root."""
    if places.systemd_bus:
        return [places.systemd_bus]
    root = unit_root(places)
    if root is None:
        return []
    sockets = [Places(root).inside(path) for path in (_BUS, _PRIVATE)]
    return [f"unix:path={path}" for path in sockets if path.exists()]


def journal_folders(places: Places) -> list[Path]:
    """Where the journal's files may lie: the folder given, or those of its root."""
    if places.journal is not None:
        return [places.journal]
    root = unit_root(places)
    return [] if root is None else [Places(root).inside(path) for path in _JOURNALS]


def find_missing(places: Places) -> list[str]:
    """Return which of the places that were given for systemd are not there, in words."""
    missing = []
    address = places.systemd_bus or ""
    socket = address.partition("unix:path=")[2].partition(",")[0]
    if socket and not Path(socket).exists():
        missing.append(f"--systemd-bus {address}: no such socket, so states of units are not seen")
    if places.journal is not None and not places.journal.is_dir():
        missing.append(f"--journal {places.journal}: no such folder, so logs of units are not seen")
    return missing


def _given(places: Places) -> list[tuple[str, tuple[str, ...]]]:
    given: list[tuple[str, tuple[str, ...]]] = []
    if places.systemd_bus is not None:
        path = places.systemd_bus.partition("unix:path=")[2] or places.systemd_bus
        given.append((path, (f"/var{_BUS}", _BUS, _PRIVATE)))  # /var/run is a link to /run
    if places.journal is not None:
        given.append((str(places.journal), _JOURNALS))
    return given
