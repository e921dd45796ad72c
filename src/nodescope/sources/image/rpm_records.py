"""Packages by rpm's database, if it is SQLite (rpm 4.16 and later: Fedora 33, RHEL 9, openSUSE).

A table `Packages` has one header per package. Older databases (Berkeley DB: `Packages`; ndb:
`Packages.db`) are named as not readable: nobody can then say which files belong to a package.
rpm has no packages marked essential; dnf and yum list those they refuse to remove in
`protected.d`, and those are taken instead.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Collection
from pathlib import Path

from nodescope.errors import MalformedSource
from nodescope.sources.image.image_files import ImageFiles
from nodescope.sources.image.installed import Installed, InstalledPackage, unmerged
from nodescope.sources.image.rpm_header import RpmHeader, parse_header

_FOLDERS = ("/usr/lib/sysimage/rpm", "/var/lib/rpm", "/usr/share/rpm")
_OTHERS = {"Packages.db": "ndb", "Packages": "Berkeley DB"}
_PROTECTED = ("/etc/dnf/protected.d", "/etc/yum/protected.d", "/usr/share/dnf5/protected.d")
_MAX_DATABASE = 1 << 30
_MAX_PACKAGES = 50_000
_STEPS_A_CALL, _MAX_CALLS = 100_000, 2_000  # of SQLite's machine: a hostile database ends


def read_rpm(files: ImageFiles, wanted: Collection[str]) -> Installed | None:
    """Return the packages, and the owners of the `wanted` paths; None if there is no rpm."""
    unreadable = []
    for folder in _FOLDERS:
        path = f"{folder}/rpmdb.sqlite"
        if files.size(path):
            try:
                return _installed(files, _read_headers(files, path), wanted)
            except (sqlite3.Error, MalformedSource, OSError) as error:
                unreadable.append(f"{path}: {str(error)[:200]}")
        for name, form in _OTHERS.items():
            if files.size(f"{folder}/{name}"):
                reason = f"a database of rpm in the format {form}, which is not readable here"
                unreadable.append(f"{folder}/{name}: {reason}")
    return Installed(unreadable=tuple(dict.fromkeys(unreadable))) if unreadable else None


def _installed(
    files: ImageFiles, headers: list[RpmHeader], wanted: Collection[str]
) -> Installed | None:
    if not headers:
        return None  # a package manager that installed nothing
    protected = _read_protected(files)
    looked_for = {unmerged(path) for path in wanted}
    packages, owners = {}, {}
    for header in headers:
        packages[header.name] = InstalledPackage(
            header.name,
            f"{header.version}-{header.release}",
            source=header.source_rpm.removesuffix(".src.rpm").rsplit("-", 2)[0] or header.name,
            essential=header.name in protected,
            needs=tuple(each for each in header.requires if not each.startswith("rpmlib(")),
            provides=header.provides,
            scripts=header.scripts,
        )
        for path in map(unmerged, header.paths):
            if path in looked_for:
                owners[path] = header.name
    return Installed(packages, owners, managers=("rpm",))


def _read_protected(files: ImageFiles) -> set[str]:
    lines = (
        line.strip()
        for folder in _PROTECTED
        for name in files.names(folder)
        if name.endswith(".conf")
        for line in files.read_text(f"{folder}/{name}").splitlines()
    )
    return {line for line in lines if line and not line.startswith("#")}


def _read_headers(files: ImageFiles, path: str) -> list[RpmHeader]:
    if files.size(path) > _MAX_DATABASE:
        raise MalformedSource(path, "larger than a database of packages can be")
    if not files.size(f"{path}-wal"):
        return _query(files.resolve(path), path)
    with tempfile.TemporaryDirectory() as folder:  # its last changes are in a log beside it
        copy = Path(folder) / "rpmdb.sqlite"
        shutil.copyfile(files.resolve(path), copy)
        shutil.copyfile(files.resolve(f"{path}-wal"), f"{copy}-wal")
        return _query(copy, path, immutable=False)


def _query(database: Path, path: str, *, immutable: bool = True) -> list[RpmHeader]:
    calls = 0

    def count() -> int:
        nonlocal calls
        calls += 1
        return int(calls > _MAX_CALLS)

    mode = "mode=ro&immutable=1" if immutable else "mode=rw"
    connection = sqlite3.connect(f"{database.absolute().as_uri()}?{mode}", uri=True)
    try:
        connection.set_progress_handler(count, _STEPS_A_CALL)
        connection.execute("PRAGMA trusted_schema = OFF")
        rows = connection.execute("SELECT blob FROM Packages LIMIT ?", (_MAX_PACKAGES,))
        return [parse_header(bytes(blob), path) for (blob,) in rows if isinstance(blob, bytes)]
    finally:
        connection.close()
