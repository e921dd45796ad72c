"""Packages by dpkg's records: `status`, the lists of files, the maintainer scripts, apt's marks.

`status` has one paragraph per package (deb-control(5)); `info/PACKAGE.list` its files and
`info/PACKAGE.postinst` the script that ran when it was installed. apt notes in `extended_states`
which packages it installed only because others needed them. Images without a database of their
own may have `status.d` with one file per package (distroless).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from nodescope.sources.image.image_files import ImageFiles
from nodescope.sources.image.installed import Installed, InstalledPackage, unmerged

_FOLDER = "/var/lib/dpkg"
_AUTOMATIC = "/var/lib/apt/extended_states"
_MAX_STATUS = 64 << 20
_MAX_LIST = 16 << 20
_MAX_SCRIPT = 256 << 10
_FIELD = re.compile(r"^([A-Z][\w-]*): ?(.*(?:\n[ \t].*)*)", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]+")
_BASE_PRIORITIES = ("required", "important")
_SCRIPTS = ("preinst", "postinst")


def read_dpkg(files: ImageFiles, wanted: Collection[str]) -> Installed | None:
    """Return the packages, and the owners of the `wanted` paths; None if there is no dpkg."""
    status = files.read_text(f"{_FOLDER}/status", _MAX_STATUS)
    parts = files.names(f"{_FOLDER}/status.d")
    apart = [files.read_text(f"{_FOLDER}/status.d/{name}") for name in parts]
    marks = files.read_text(_AUTOMATIC, _MAX_STATUS)
    packages = parse_status("\n\n".join((status, *apart)), parse_automatic(marks))
    if not packages:
        return None
    looked_for = {unmerged(path) for path in wanted}
    present = set(files.names(f"{_FOLDER}/info"))
    owners: dict[str, str] = {}
    scripts: dict[str, str] = {}
    for listing in sorted(name for name in present if name.endswith(".list")):
        stem = listing.removesuffix(".list")
        name = stem.partition(":")[0]
        owned = files.read_text(f"{_FOLDER}/info/{listing}", _MAX_LIST)
        mine = [path for path in map(unmerged, owned.splitlines()) if path in looked_for]
        owners |= dict.fromkeys(mine, name)
        if mine and name in packages:
            ran = [f"{stem}.{script}" for script in _SCRIPTS if f"{stem}.{script}" in present]
            texts = (files.read_text(f"{_FOLDER}/info/{each}", _MAX_SCRIPT) for each in ran)
            scripts[name] = "\n".join(texts)
    known = {name: _with_scripts(each, scripts.get(name)) for name, each in packages.items()}
    return Installed(known, owners, managers=("dpkg",))


def _with_scripts(package: InstalledPackage, scripts: str | None) -> InstalledPackage:
    return replace(package, scripts=scripts) if scripts else package


def parse_automatic(text: str) -> dict[str, bool]:
    """Return which packages apt's `extended_states` marks as installed for others."""
    marked = {}
    for fields in _paragraphs(text):
        if "Package" in fields:
            marked[fields["Package"]] = fields.get("Auto-Installed", "0").strip() == "1"
    return marked


def parse_status(text: str, automatic: dict[str, bool]) -> dict[str, InstalledPackage]:
    """Return the installed packages of dpkg's `status`; without marks, who asked is unknown."""
    packages = {}
    for fields in _paragraphs(text):
        name = fields.get("Package")
        state = fields.get("Status", "install ok installed")  # `status.d` has none
        if name is None or not state.endswith((" installed", " triggers-pending", "-awaited")):
            continue
        declared = fields.get("Essential") == "yes" or fields.get("Protected") == "yes"
        packages[name] = InstalledPackage(
            name,
            fields.get("Version", "?"),
            source=(fields.get("Source") or name).split(" ")[0],
            essential=declared or fields.get("Priority") in _BASE_PRIORITIES,
            needs=tuple(_names(f"{fields.get('Pre-Depends', '')},{fields.get('Depends', '')}")),
            provides=tuple(_names(fields.get("Provides", ""))),
            automatic=automatic.get(name, False) if automatic else None,
        )
    return packages


def _paragraphs(text: str) -> Iterator[dict[str, str]]:
    for paragraph in text.split("\n\n"):
        yield dict(_FIELD.findall(paragraph))


def _names(relations: str) -> Iterator[str]:
    """Return each relation's alternatives: `a (>= 1), b | c:any` gives `a` and `b|c`."""
    for relation in relations.split(","):
        found = (_NAME.match(each.strip()) for each in relation.split("|"))
        names = [match[0] for match in found if match is not None]
        if names:
            yield "|".join(names)
