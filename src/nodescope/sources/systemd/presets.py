"""Presets: which units an image wants enabled, as systemd.preset(5) has it."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DIRECTORIES = (
    "etc/systemd/system-preset",
    "run/systemd/system-preset",
    "usr/local/lib/systemd/system-preset",
    "usr/lib/systemd/system-preset",
    "lib/systemd/system-preset",
)


@dataclass(frozen=True, slots=True)
class PresetRule:
    """One line of a preset file."""

    verb: str  # enable, disable or ignore
    pattern: str
    where: str  # file and line
    instances: tuple[str, ...] = ()

    @property
    def names(self) -> bool:
        """Return whether the rule names some units, not all."""
        return self.pattern.strip("*") != ""

    def covers(self, unit: str) -> bool:
        if fnmatch.fnmatchcase(unit, self.pattern):
            return True
        if not self.instances or "@" not in unit:
            return False
        stem, _, rest = unit.partition("@")
        instance, _, suffix = rest.rpartition(".")
        return instance in self.instances and self.pattern == f"{stem}@.{suffix}"


def parse_presets(files: Mapping[str, bytes]) -> list[PresetRule]:
    """The rules of preset files by path, in the order in which they are tried."""
    rules = []
    for path in sorted(files, key=lambda each: each.rpartition("/")[2]):
        for number, line in enumerate(files[path].decode("utf-8", "replace").splitlines(), 1):
            words = line.split()
            if len(words) >= 2 and words[0] in ("enable", "disable", "ignore"):
                rules.append(PresetRule(words[0], words[1], f"{path}:{number}", tuple(words[2:])))
    return rules


def find_rule(unit: str, rules: Iterable[PresetRule]) -> PresetRule | None:
    """The first rule that covers a unit; None: no rule, and so enabled."""
    return next((rule for rule in rules if rule.covers(unit)), None)
