"""The links that enable a unit: in `*.wants`, `*.requires` and `*.upholds`, and its aliases.

Only those of an administrator (/etc) and of this boot (/run) count: a link that came with a
package stays, and a unit that such a link pulls in has to be masked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_FOLDERS = ("/etc/systemd/system", "/run/systemd/system")
_PULLS_IN = (".wants", ".requires", ".upholds")


def find_enabling_links(root: Path, unit: str) -> list[str]:
    """Return the paths, as the node names them, of the links that enable a unit."""
    names = {unit}
    aliases: list[str] = []
    for _ in range(8):  # an alias may be of an alias
        found = [each for each in _find_aliases(root, names) if each not in aliases]
        if not found:
            break
        aliases += found
        names |= {each.rpartition("/")[2] for each in found}
    return [*_find_wants(root, names), *aliases]


def _find_aliases(root: Path, names: set[str]) -> Iterator[str]:
    for folder in _FOLDERS:
        for entry in _entries(root, folder):
            if entry.is_symlink() and entry.name not in names:
                target = os.readlink(entry.path).rpartition("/")[2]
                if target in names:
                    yield f"{folder}/{entry.name}"


def _find_wants(root: Path, names: set[str]) -> Iterator[str]:
    for folder in _FOLDERS:
        for pulling in _entries(root, folder):
            if pulling.name.endswith(_PULLS_IN) and pulling.is_dir(follow_symlinks=False):
                inner = f"{folder}/{pulling.name}"
                for entry in _entries(root, inner):
                    if entry.name in names and entry.is_symlink():
                        yield f"{inner}/{entry.name}"


def _entries(root: Path, folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(root / folder.lstrip("/")) as found:
            return sorted(found, key=lambda each: each.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
