"""The whole state of a guest that a remedy may change, to be compared before and after."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from tests.systemd_guest import Guest

_PROPERTIES = (
    "ActiveState,SubState,UnitFileState,LoadState,FragmentPath,DropInPaths,MemoryMax,TasksMax,"
    "CPUWeight,CPUQuotaPerSecUSec,NeedDaemonReload"
)


def read_tree(root: Path, *folders: str) -> dict[str, str]:
    """Return every path below some folders: kind, mode, owner, time, attributes, content."""
    found = {}
    for folder in folders:
        for place, folders_in, files in os.walk(root / folder):
            for path in (place, *(os.path.join(place, each) for each in (*files, *folders_in))):
                found[os.path.relpath(path, root)] = _describe(path)
    return found


def _describe(path: str) -> str:
    entry = os.lstat(path)
    if stat.S_ISLNK(entry.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(entry.st_mode):
        content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    else:
        content = ""
    attributes = {
        name: os.getxattr(path, name, follow_symlinks=False)
        for name in os.listxattr(path, follow_symlinks=False)
    }
    return " ".join(
        map(
            str,
            (
                oct(entry.st_mode),
                entry.st_uid,
                entry.st_gid,
                entry.st_mtime_ns,
                attributes,
                content,
            ),
        )
    )


def read_guest(guest: Guest, *units: str) -> dict[str, str]:
    """Return its /etc and systemd's files in /run, and the states and settings of units."""
    found = read_tree(guest.root, "etc", "run/systemd/system", "run/systemd/system.control")
    for unit in units:
        shown = guest.run("systemctl", "show", f"--property={_PROPERTIES}", "--", unit)
        found[f"unit {unit}"] = shown.stdout.decode()
    files = guest.run("systemctl", "list-unit-files", "--no-legend", "--no-pager")
    found["unit files"] = files.stdout.decode()
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Return what differs, by path or unit."""
    keys = before.keys() | after.keys()
    return {
        key: (before.get(key, "absent"), after.get(key, "absent"))
        for key in sorted(keys)
        if before.get(key) != after.get(key)
    }
