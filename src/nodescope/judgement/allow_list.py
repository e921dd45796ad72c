"""The allow-list of an image: what may start, and the reason that somebody gave.

Two forms. TOML, one `[[allow]]` table per entry: `name`, `package`, `path`, `kind` and `origin` are
globs that must all match, `reason` is required. Or plain lines: a glob of a name or a path, or
`package:GLOB`, then `#` and the reason.
"""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodescope.errors import UsageError

_KEYS = ("name", "package", "path", "kind", "origin")
_EXAMPLE = 'write [[allow]] with name = "ssh.service" and reason = "…", or `ssh.service  # why`'


@dataclass(frozen=True, slots=True)
class Allowance:
    """One entry: everything in `globs` must match."""

    globs: Mapping[str, str]
    reason: str
    line: int  # of the entry in a plain list, or its number in a TOML file

    def __str__(self) -> str:
        return ", ".join(f"{key} {glob}" for key, glob in self.globs.items())

    def covers(self, facts: Mapping[str, str | None]) -> bool:
        """Decide whether something with these facts is allowed."""
        for key, glob in self.globs.items():
            keys = ("name", "path") if key == "any" else (key,)
            values = [value for each in keys if (value := facts.get(each)) is not None]
            if not any(fnmatch.fnmatchcase(value, glob) for value in values):
                return False
        return True


@dataclass(slots=True)
class AllowList:
    """The entries of a file, and which of them allowed something."""

    entries: tuple[Allowance, ...] = ()
    used: set[int] = field(default_factory=set)

    def find(self, facts: Mapping[str, str | None]) -> Allowance | None:
        """Return the first entry that covers the facts; all that do count as used."""
        found = [number for number, each in enumerate(self.entries) if each.covers(facts)]
        self.used.update(found)
        return self.entries[found[0]] if found else None

    @property
    def unused(self) -> list[Allowance]:
        """Return the entries that allowed nothing."""
        return [each for number, each in enumerate(self.entries) if number not in self.used]


def parse_allow_list(content: bytes, path: str) -> AllowList:
    """Return a file's entries; `UsageError` names what is wrong with one."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not text", hint=_EXAMPLE) from None
    is_toml = path.endswith(".toml") or "[[allow]]" in text
    return AllowList(tuple(_parse_toml(text, path) if is_toml else _parse_lines(text, path)))


def _parse_toml(text: str, path: str) -> list[Allowance]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}", hint=_EXAMPLE) from None
    unknown = sorted(set(document) - {"allow"})
    listed = document.get("allow", [])
    if unknown or not isinstance(listed, list):
        raise UsageError(f"{path}: unknown key {(unknown or ['allow'])[0]!r}", hint=_EXAMPLE)
    return [_entry(each, number, path) for number, each in enumerate(listed, 1)]


def _entry(fields: Any, number: int, path: str) -> Allowance:
    where = f"{path}: entry {number}"
    if not isinstance(fields, dict):
        raise UsageError(f"{where} is no table", hint=_EXAMPLE)
    for key, value in fields.items():
        if key not in (*_KEYS, "reason"):
            raise UsageError(f"{where}: unknown key {key!r}", hint=f"known: {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{where}: {key} must be a text", hint=_EXAMPLE)
    if "reason" not in fields or len(fields) == 1:
        lacks = "a reason" if "reason" not in fields else f"one of {', '.join(_KEYS)}"
        raise UsageError(f"{where} lacks {lacks}", hint=_EXAMPLE)
    globs = {key: fields[key] for key in _KEYS if key in fields}
    return Allowance(globs, fields["reason"].strip(), number)


def _parse_lines(text: str, path: str) -> list[Allowance]:
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        glob, sign, reason = line.partition("#")
        if not sign or not reason.strip():
            raise UsageError(f"{path}: line {number} lacks a reason", hint=_EXAMPLE)
        key, colon, rest = glob.strip().partition(":")
        named = bool(colon) and key in _KEYS
        globs = {key: rest.strip()} if named else {"any": glob.strip()}
        entries.append(Allowance(globs, reason.strip(), number))
    return entries
