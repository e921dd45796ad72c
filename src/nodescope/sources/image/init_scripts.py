"""Init scripts and rc.local, as systemd's generators turn them into units.

systemd-sysv-generator(8): an executable script of `/etc/init.d` becomes a service, unless a unit
of its name exists; a link `rcN.d/S??NAME` of the runlevels 2 to 5 has it started.
systemd-rc-local-generator(8): an executable `/etc/rc.local` (Fedora: `/etc/rc.d/rc.local`) runs
at boot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from nodescope.sources.image.boot_items import BootItem
from nodescope.sources.image.image_files import ImageFiles

_FOLDERS = (("/etc/init.d", "/etc"), ("/etc/rc.d/init.d", "/etc/rc.d"))
_GENERATORS = ("/usr/lib/systemd/system-generators", "/lib/systemd/system-generators")
_LOCAL = ("/etc/rc.local", "/etc/rc.d/rc.local")
_RUN_LEVELS = "2345"
_START = re.compile(r"S\d\d(.+)")


def read_init_scripts(files: ImageFiles, has_unit: Callable[[str], bool]) -> Iterator[BootItem]:
    """Return the scripts that start at boot; `has_unit` tells where a unit replaces one."""
    kept = None if _has_generator(files, "systemd-sysv-generator") else "nothing runs init scripts"
    seen: set[str] = set()
    for folder, levels in _FOLDERS:
        enabled: dict[str, list[str]] = {}
        for level in _RUN_LEVELS:
            for name in files.names(f"{levels}/rc{level}.d"):
                match = _START.fullmatch(name)
                if match is not None:
                    enabled.setdefault(match[1], []).append(f"{levels}/rc{level}.d/{name}")
        for name, links in enabled.items():
            service = f"{name.removesuffix('.sh')}.service"
            path = f"{folder}/{name}"
            real = str(files.resolve(path))
            if real in seen or has_unit(service) or not files.is_script(path):
                continue
            seen.add(real)
            yield BootItem("sysv", service, path, f"{path} start", kept=kept, links=tuple(links))


def read_local_script(files: ImageFiles) -> Iterator[BootItem]:
    """Return rc.local, if it may be executed and has a command."""
    seen = set()
    for path in _LOCAL:
        commands = [
            line.strip()
            for line in files.read_text(path).splitlines()
            if line.strip() and not line.lstrip().startswith("#")
        ]
        real = files.resolve(path)
        if real in seen or not files.is_script(path) or set(commands) <= {"exit 0", "exit"}:
            continue
        seen.add(real)
        there = _has_generator(files, "systemd-rc-local-generator")
        kept = None if there else "nothing runs rc.local"
        yield BootItem("rc-local", path, path, commands[0][:200], kept=kept)


def _has_generator(files: ImageFiles, name: str) -> bool:
    return any(files.exists(f"{folder}/{name}") for folder in _GENERATORS)


def read_generators(files: ImageFiles) -> Iterator[BootItem]:
    """Return every program that makes units at boot: which ones, only running it shows."""
    folders = ("/etc/systemd/system-generators", "/usr/local/lib/systemd/system-generators")
    seen: set[str] = set()
    for folder in (*folders, *_GENERATORS):
        for name in files.names(folder):
            path = f"{folder}/{name}"
            if name not in seen and files.is_script(path):
                yield BootItem("generator", name, path, f"{path} makes units at every boot")
            seen.add(name)


def read_lingering(files: ImageFiles) -> Iterator[BootItem]:
    """Return the users whose own units start at boot (`loginctl enable-linger`)."""
    folder = "/var/lib/systemd/linger"
    for name in files.names(folder):
        path = f"{folder}/{name}"
        yield BootItem("linger", name, path, f"the units of user {name}")
