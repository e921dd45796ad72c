"""Which files belong to packages that an image cannot do without, by dpkg's own records.

A package is needed if it is part of the distribution's standard system (`Priority`), or
another installed one depends on it or recommends it, by its name or by one it provides.
Images of other package managers tell nothing here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from nodescope.sources.places import resolve_inside

_STATUS = "var/lib/dpkg/status"
_FILES = "var/lib/dpkg/info"
_STANDARD = ("required", "important", "standard")
_NEEDS = ("Pre-Depends", "Depends", "Recommends")
_FIELD = re.compile(r"^([A-Z][\w-]*): (.*(?:\n[ \t].*)*)", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_MAX_BYTES = 64 << 20


def read_needed_files(root: Path, files: Collection[str]) -> set[str]:
    """Those of `files` (absolute in the image) that a needed package brought."""
    needed = parse_needed(_read(root, _STATUS))
    if not needed or not files:
        return set()
    wanted = {_merged(path): path for path in files}
    found = set()
    for name in sorted(needed):
        for path in _paths_of(root, name):
            if path in wanted:
                found.add(wanted[path])
    return found


def parse_needed(status: str) -> set[str]:
    """Packages that are needed, from dpkg's `status`."""
    installed = {}
    for paragraph in status.split("\n\n"):
        fields = dict(_FIELD.findall(paragraph))
        if "Package" in fields and fields.get("Status", "").endswith(" installed"):
            installed[fields["Package"]] = fields
    asked: dict[str, set[str]] = {}  # who asks for a name
    for name, fields in installed.items():
        for each in _NEEDS:
            for other in _names(fields.get(each, "")):
                asked.setdefault(other, set()).add(name)
    needed = set()
    for name, fields in installed.items():
        called = {name, *_names(fields.get("Provides", ""))}
        askers = {asker for each in called for asker in asked.get(each, ())}
        if fields.get("Priority") in _STANDARD or askers - {name}:
            needed.add(name)
    return needed


def _names(relations: str) -> Iterator[str]:
    """`a (>= 1), b | c:any` names three packages."""
    for alternatives in relations.split(","):
        for each in alternatives.split("|"):
            match = _NAME.match(each.strip())
            if match is not None:
                yield match[0]


def _paths_of(root: Path, package: str) -> Iterator[str]:
    for name in (f"{package}.list", f"{package}:{_architecture(root)}.list"):
        for line in _read(root, f"{_FILES}/{name}").splitlines():
            yield _merged(line)


def _architecture(root: Path) -> str:
    return _read(root, "var/lib/dpkg/arch").split("\n")[0] or "amd64"


def _merged(path: str) -> str:
    """`/lib` is `/usr/lib` on a merged system, and packages may name either."""
    return path.removeprefix("/usr")


def _read(root: Path, relative: str) -> str:
    """Return a file's text, if it is an ordinary one and below the root."""
    path = resolve_inside(root, relative)
    try:
        if not os.path.isfile(path) or os.path.islink(path):
            return ""
        with open(path, "rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
