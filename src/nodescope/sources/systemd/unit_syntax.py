"""Unit files as text: sections, continued lines, values that add up or begin anew."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.sources.systemd.unit import Check

MAX_BYTES = 1 << 20
_TRUE = ("1", "yes", "true", "on")


class Settings:
    """The settings of a unit file with its drop-ins."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], list[str]] = {}
        self.sections: set[str] = set()

    def read(self, content: bytes) -> None:
        """Take in a file; of one setting, later values add up, an empty one begins anew."""
        section = ""
        for line in _joined(content[:MAX_BYTES].decode("utf-8", "replace").splitlines()):
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
                self.sections.add(section)
                continue
            key, sign, value = line.partition("=")
            if not sign:
                continue  # systemd warns and goes on
            listed = self._values.setdefault((section, key.strip()), [])
            if value.strip():
                listed.append(value.strip())
            else:
                listed.clear()

    def all(self, section: str, key: str) -> list[str]:
        """Every value of a setting."""
        return self._values.get((section, key), [])

    def last(self, section: str, key: str) -> str | None:
        """The value of a setting that has one."""
        values = self.all(section, key)
        return values[-1] if values else None

    def words(self, section: str, key: str) -> list[str]:
        """The words of a setting that is a list."""
        return [word for value in self.all(section, key) for word in value.split()]

    def is_true(self, section: str, key: str, default: bool) -> bool:
        value = self.last(section, key)
        return default if value is None else value.lower() in _TRUE

    def checks(self, kind: str) -> tuple[Check, ...]:
        """`Condition…=` or `Assert…=` settings of a unit."""
        return tuple(
            _check(key, value)
            for (section, key), values in self._values.items()
            if section == "Unit" and key.startswith(kind)
            for value in values
        )


def _check(key: str, value: str) -> Check:
    trigger = value.startswith("|")
    value = value.removeprefix("|").lstrip()
    negated = value.startswith("!")
    return Check(key, value.removeprefix("!").lstrip(), negated, trigger)


def _joined(lines: Iterable[str]) -> Iterable[str]:
    """Lines without comments, continued ones in one."""
    pending = ""
    for raw in lines:
        line = raw.strip()
        if line.startswith(("#", ";")):
            continue
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        line, pending = (pending + line).strip(), ""
        if line:
            yield line
    if pending.strip():
        yield pending.strip()
