"""The files that make up a unit: fragment, drop-ins, and the links by which others want it.

systemd.unit(5) has the folders and names. Content is a fact by its digest; a link is a fact by
where it leads. Only paths below the node's root are read, and nothing is followed out of it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from nodescope.remedy.node_access import NodeAccess

_FOLDERS = (
    "etc/systemd/system.control", "run/systemd/system.control", "run/systemd/transient",
    "run/systemd/generator.early", "etc/systemd/system", "run/systemd/system",
    "run/systemd/generator", "usr/local/lib/systemd/system", "usr/lib/systemd/system",
    "run/systemd/generator.late",
)  # fmt: skip
_LINKS = (".wants", ".requires", ".upholds")
_MAX_BYTES = 4 << 20


def list_unit_files(name: str, node: NodeAccess) -> list[str]:
    """Return the paths on the node of everything that belongs to a unit."""
    found = []
    for folder in _FOLDERS:
        path = node.unit_root / folder
        for each in _candidates(name):
            if os.path.lexists(path / each):
                found.append(f"/{folder}/{each}")
            found += [f"/{folder}/{each}.d/{conf}" for conf in _drop_ins(path / f"{each}.d")]
        for entry in sorted(_names(path)):
            if entry.endswith(_LINKS) and os.path.lexists(path / entry / name):
                found.append(f"/{folder}/{entry}/{name}")
            elif _is_alias(path / entry, name):
                found.append(f"/{folder}/{entry}")
    return list(dict.fromkeys(found))


def read_file_digest(path: str, node: NodeAccess) -> str:
    """Return the digest of a file, where a link leads, or `absent`."""
    place = node.unit_root / path.lstrip("/")
    try:
        mode = os.lstat(place).st_mode
        if stat.S_ISLNK(mode):
            return f"a link to {os.readlink(place)}"
        if not stat.S_ISREG(mode):
            return "not a file"
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return "absent"
    except OSError as error:
        return f"not readable ({error.strerror})"
    return f"sha256:{hashlib.sha256(content).hexdigest()[:32]}"


def _candidates(name: str) -> list[str]:
    """Return the names whose files and drop-ins apply: its own, its template's, prefixes'."""
    stem, _, suffix = name.rpartition(".")
    names = [name]
    if "@" in stem:
        stem = f"{stem.partition('@')[0]}@"
        names.append(f"{stem}.{suffix}")
    parts = stem.partition("@")[0].split("-")
    names += [f"{'-'.join(parts[:count])}-.{suffix}" for count in range(len(parts) - 1, 0, -1)]
    return [*names, suffix]


def _drop_ins(folder: Path) -> list[str]:
    return sorted(name for name in _names(folder) if name.endswith(".conf"))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_alias(path: Path, name: str) -> bool:
    """Decide whether a path is a link to the unit under another name."""
    if path.name == name:
        return False
    try:
        return os.path.basename(os.readlink(path)) == name
    except OSError:
        return False  # no link
