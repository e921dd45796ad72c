"""Unit files of a system, running or not: which there are, and what is enabled.

Everything is looked for below a root, links included: an absolute link of a
mounted image leads into the image. The order of folders is that of
systemd.unit(5), the states are those of `systemctl is-enabled`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nodescope.errors import SourceAbsent
from nodescope.sources.places import resolve_inside
from nodescope.sources.systemd import presets
from nodescope.sources.systemd.unit import TYPES, Unit, slice_path
from nodescope.sources.systemd.unit_syntax import MAX_BYTES, Settings

_DIRECTORIES = (  # the path, and who puts units there
    ("etc/systemd/system.control", "administrator"),
    ("run/systemd/system.control", "administrator"),
    ("run/systemd/transient", "transient"),
    ("run/systemd/generator.early", "generator"),
    ("etc/systemd/system", "administrator"),
    ("etc/systemd/system.attached", "administrator"),
    ("run/systemd/system", "runtime"),
    ("run/systemd/system.attached", "runtime"),
    ("run/systemd/generator", "generator"),
    ("usr/local/lib/systemd/system", "administrator"),
    ("usr/lib/systemd/system", "vendor"),
    ("lib/systemd/system", "vendor"),
    ("run/systemd/generator.late", "generator"),
)
_WANTS = (".wants", ".requires", ".upholds")
_VALID_STEM = re.compile(r"[A-Za-z0-9:_.\\@-]+")
_MAX_UNITS = 20_000


@dataclass(frozen=True, slots=True)
class _Fragment:
    path: str
    origin: str
    is_link: bool


@dataclass(frozen=True, slots=True)
class UnitLink:
    """An entry of a `.wants`, `.requires` or `.upholds` folder."""

    parent: str
    origin: str
    path: str  # absolute in the system


def vendor_of(fragment: str | None) -> str | None:
    """Who put a unit file where it is; None if there is no file."""
    folder = (fragment or "").rpartition("/")[0].lstrip("/")
    return next((origin for relative, origin in _DIRECTORIES if relative == folder), None)


class UnitFiles:
    """The unit files below a root, read once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._fragments: dict[str, _Fragment] = {}
        self._links: dict[str, list[UnitLink]] = {}
        self._dropins: dict[str, dict[str, str]] = {}
        self._configured: set[str] = set()  # units with a drop-in of an administrator
        seen: set[str] = set()
        for relative, origin in _DIRECTORIES:
            directory = resolve_inside(root, relative)
            if directory not in seen and os.path.isdir(directory):
                seen.add(directory)
                self._scan(directory, origin)
        if not self._fragments:
            raise SourceAbsent(root, "no unit files of systemd below it")
        self.directories = tuple(seen)

    def _scan(self, directory: str, origin: str) -> None:
        for entry in _entries(directory):
            name = entry.name
            if name.endswith(_WANTS):
                self._scan_links(self._inside(entry), name.rpartition(".")[0], origin)
            elif name.endswith(".d"):
                listed = self._dropins.setdefault(name[:-2], {})
                for each in _entries(self._inside(entry)):
                    if each.name.endswith(".conf"):
                        listed.setdefault(each.name, each.path)
                        if origin == "administrator":
                            self._configured.add(name[:-2])
            elif _is_unit(name) and len(self._fragments) < _MAX_UNITS:
                fragment = _Fragment(entry.path, origin, entry.is_symlink())
                self._fragments.setdefault(name, fragment)

    def _scan_links(self, directory: str, parent: str, origin: str) -> None:
        for entry in _entries(directory):
            if _is_unit(entry.name) and len(self._links) < _MAX_UNITS:
                link = UnitLink(parent, origin, self.below(entry.path))
                self._links.setdefault(entry.name, []).append(link)

    def _inside(self, entry: os.DirEntry[str]) -> str:
        """Return the folder of an entry; a linked one is looked for below the root."""
        return resolve_inside(self._root, self._below(entry.path))

    @cached_property
    def preset_rules(self) -> list[presets.PresetRule]:
        """The rules of all preset files; of files of one name the first counts."""
        files: dict[str, tuple[str, bytes]] = {}
        for relative in presets.DIRECTORIES:
            for entry in _entries(resolve_inside(self._root, relative)):
                if entry.name.endswith(".preset") and entry.name not in files:
                    shown = f"/{relative}/{entry.name}"
                    files[entry.name] = (shown, self._read(entry.path) or b"")
        return presets.parse_presets(dict(files.values()))

    def names(self) -> list[str]:
        """Every unit there is a file or a link for; templates are not units."""
        named = {name for name in (*self._fragments, *self._links) if "@." not in name}
        return sorted(named)

    def templates(self) -> list[str]:
        """Return every template there is a file for."""
        return sorted(name for name in self._fragments if "@." in name)

    def wanted_by(self, name: str) -> tuple[str, ...]:
        """Units whose `.wants`, `.requires` or `.upholds` name it."""
        return tuple(dict.fromkeys(link.parent for link in self._links.get(name, ())))

    def links_of(self, name: str) -> tuple[UnitLink, ...]:
        """Return the links that want a unit, of those that administrators set first."""
        return tuple(self._links.get(name, ()))

    def fragment_of(self, name: str) -> _Fragment | None:
        """Its file, or that of its template."""
        found = self._fragments.get(name)
        if found is None and "@" in name:
            stem, _, rest = name.partition("@")
            found = self._fragments.get(f"{stem}@.{rest.rpartition('.')[2]}")
        return found

    def alias_of(self, name: str) -> str:
        """The unit that a name stands for: itself, if it is no alias."""
        fragment = self._fragments.get(name)
        if fragment is None or not fragment.is_link:
            return name
        target = os.path.basename(resolve_inside(self._root, self._below(fragment.path)))
        return target if _is_unit(target) else name

    def settings(self, name: str) -> Settings:
        """Return the settings of a unit's file and drop-ins."""
        settings = Settings()
        fragment = self.fragment_of(name)
        if fragment is not None:
            settings.read(self._read(fragment.path) or b"")
        for content in self.drop_ins(name).values():
            settings.read(content)
        return settings

    def drop_ins(self, name: str) -> dict[str, bytes]:
        """Return the drop-ins of a unit by their path in the system, in the order they apply."""
        suffix = name.rpartition(".")[2]
        paths: dict[str, str] = {}
        template = f"{name.partition('@')[0]}@.{suffix}" if "@" in name else name
        for each in (suffix, template, name):
            paths |= self._dropins.get(each, {})
        found = (paths[each] for each in sorted(paths))
        return {self.below(path): self._read(path) or b"" for path in found}

    def state(self, name: str, settings: Settings) -> str | None:
        """Return the state that `systemctl is-enabled` prints; None if there is no such file."""
        fragment = self.fragment_of(name)
        if fragment is None:
            return None
        if self._is_masked(fragment):
            return "masked"
        if fragment.origin in ("generator", "transient"):
            return "generated" if fragment.origin == "generator" else "transient"
        if self.alias_of(name) != name:
            return "alias"
        origins = {link.origin for each in self._with_instances(name) for link in self._links[each]}
        if "administrator" in origins or self._has_alias(name, settings):
            return "enabled"
        if "runtime" in origins:
            return "enabled-runtime"
        install = [
            key for key in ("WantedBy", "RequiredBy", "UpheldBy") if settings.words("Install", key)
        ]
        if install or settings.words("Install", "Alias"):
            return "disabled"
        return "indirect" if settings.words("Install", "Also") else "static"

    def _with_instances(self, name: str) -> list[str]:
        """The unit, if anything links to it; a template is enabled by its instances."""
        prefix, at, suffix = name.partition("@.")
        if not at:
            return [name] if name in self._links else []
        return [
            each for each in self._links
            if each.startswith(f"{prefix}@") and each.endswith(f".{suffix}")
        ]  # fmt: skip

    def _has_alias(self, name: str, settings: Settings) -> bool:
        for alias in settings.words("Install", "Alias"):
            fragment = self._fragments.get(alias)
            if fragment is not None and fragment.is_link and self.alias_of(alias) == name:
                return True
        return False

    def _is_masked(self, fragment: _Fragment) -> bool:
        try:
            if fragment.is_link and os.readlink(fragment.path) == "/dev/null":
                return True
            found = os.lstat(fragment.path)
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size == 0

    def rule_for(self, name: str) -> presets.PresetRule | None:
        """The preset rule that covers a unit."""
        return presets.find_rule(name, self.preset_rules)

    def unit(self, name: str) -> Unit:
        """Return the unit as its files alone describe it."""
        settings = self.settings(name)
        fragment = self.fragment_of(name)
        state = self.state(name, settings)
        rule = self.rule_for(name)
        wanted_by = self.wanted_by(name)
        simple = "simple" if "Service" in settings.sections else None
        cgroup = slice_path(settings.last("Service", "Slice") or "system.slice") + f"/{name}"
        return Unit(
            name,
            load="masked" if state == "masked" else "loaded" if fragment else "not-found",
            type=settings.last("Service", "Type") or simple,
            restart_policy=settings.last("Service", "Restart"),
            file_state=state,
            preset="disabled" if rule is not None and rule.verb == "disable" else "enabled",
            preset_rule=_describe_rule(rule),
            vendor=fragment.origin if fragment else None,
            fragment=None if fragment is None else self.below(fragment.path),
            wanted_by=wanted_by,
            configured=name in self._configured,
            image_wants=any(link.origin == "vendor" for link in self._links.get(name, ())),
            bus_name=settings.last("Service", "BusName"),
            terminal=(settings.last("Service", "StandardInput") or "").startswith("tty"),
            control_group=cgroup if name.endswith(".service") else None,
            conditions=settings.checks("Condition"),
            asserts=settings.checks("Assert"),
            requires=tuple(
                word
                for key in ("Requires", "Requisite", "BindsTo")
                for word in settings.words("Unit", key)
            ),
            wants=tuple(settings.words("Unit", "Wants")),
            after=tuple(settings.words("Unit", "After")),
            before=tuple(settings.words("Unit", "Before")),
            triggers=settings.last("Socket", "Service")
            or settings.last("Timer", "Unit")
            or settings.last("Path", "Unit"),
        )

    def below(self, path: str) -> str:
        """Return a path as the system itself names it."""
        return "/" + self._below(path)

    def resolved(self, path: str) -> str:
        """Return where a path leads in the system, as the system itself names it."""
        return self.below(resolve_inside(self._root, self._below(path)))

    def _below(self, path: str) -> str:
        return os.path.relpath(path, self._root)

    def _read(self, path: str) -> bytes | None:
        """A file's content; None for what is no ordinary file or went away."""
        try:
            target = resolve_inside(self._root, self._below(path))
            if not stat.S_ISREG(os.stat(target).st_mode):
                return None
            with open(target, "rb") as file:
                return file.read(MAX_BYTES)
        except OSError:
            return None


def _describe_rule(rule: presets.PresetRule | None) -> str | None:
    if rule is None or rule.verb != "enable" or not rule.names:
        return None
    return f"{rule.verb} {rule.pattern} ({rule.where})"


def _is_unit(name: str) -> bool:
    """Decide whether systemd takes a file's name for a unit's."""
    stem, _, suffix = name.rpartition(".")
    return suffix in TYPES and _VALID_STEM.fullmatch(stem) is not None and len(name) < 256


def _entries(directory: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            yield from sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return  # not there, or went away
