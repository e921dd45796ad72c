"""Services that the message bus starts when somebody calls their name (D-Bus specification)."""

from __future__ import annotations

from collections.abc import Iterator

from nodescope.sources.image.boot_items import BootItem, When
from nodescope.sources.image.image_files import ImageFiles
from nodescope.sources.systemd.unit_syntax import Settings

_FOLDERS = (
    "/etc/dbus-1/system-services",
    "/usr/local/share/dbus-1/system-services",
    "/usr/share/dbus-1/system-services",
    "/lib/dbus-1/system-services",
)


def read_bus_names(files: ImageFiles) -> Iterator[BootItem]:
    """Return the activatable names; the first folder that has one counts."""
    seen = set()
    for folder in _FOLDERS:
        for name in files.names(folder):
            if not name.endswith(".service") or name in seen:
                continue
            seen.add(name)
            path = f"{folder}/{name}"
            settings = Settings()
            settings.read(files.read(path) or b"")
            section = "D-BUS Service"
            bus_name = settings.last(section, "Name") or name.removesuffix(".service")
            started = settings.last(section, "SystemdService") or settings.last(section, "Exec")
            if started and started != "/bin/false":
                yield BootItem("dbus", bus_name, path, started, When.DEMAND)
