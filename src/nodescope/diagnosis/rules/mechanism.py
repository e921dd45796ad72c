"""Mechanisms: what the kernel was doing, told by families of its functions.

Each is a file in `mechanisms/`; docs/diagnosis.md says how to add one. A stack
belongs to the first mechanism, in the order of `rank`, of which it has a function, or
one of whose `leaves` it ends in (and, where `with` is given, one of those too, and
none of `without`). Leaves tell walking from working: a core that is in `shrink_node`
itself, and not below it, goes from one cgroup to the next and finds nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from nodescope.errors import NodescopeError, UsageError
from nodescope.records.action import Action, parse_action
from nodescope.records.view import View
from nodescope.records.view_forms import parse_view

STATES = ("zombies", "memory_pressure", "none")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One way in which the kernel holds a core."""

    name: str
    rank: int
    title: str
    meaning: str
    functions: frozenset[str]
    prefixes: tuple[str, ...]
    leaves: frozenset[str]
    with_functions: frozenset[str]
    without: frozenset[str]
    needs: str  # the state that makes it costly
    otherwise: str | None  # the mechanism it is without that state
    entry: bool  # a way into the kernel: gives way to what is done there
    check: tuple[View, ...]  # that look for it elsewhere
    stop: Action | None  # what to do about the source where its name is not known
    fix: tuple[Action, ...]

    def holds(self, frames: Sequence[str]) -> bool:
        """Return whether a stack with these kernel functions, outermost first, belongs here."""
        plain = [frame.split(".", 1)[0] for frame in frames]  # foo.constprop.0 is foo
        names = set(plain)
        if self.without & names:
            return False
        if self.with_functions and not self.with_functions & names:
            return False
        if self.functions & names or (plain and plain[-1] in self.leaves):
            return True
        return bool(self.prefixes) and any(name.startswith(self.prefixes) for name in names)


def parse_mechanism(name: str, text: str) -> Mechanism:
    """One file; says by name what is wrong with it."""
    try:
        content: dict[str, object] = tomllib.loads(text)
        functions = _texts(content, "functions")
        known = {
            "rank", "title", "meaning", "functions", "leaves", "with", "without", "needs",
            "otherwise", "entry", "check", "stop", "fix",
        }  # fmt: skip
        if unknown := sorted(content.keys() - known):
            raise ValueError(f"unknown key {unknown[0]!r}")
        needs = str(content.get("needs", "none"))
        if needs not in STATES:
            raise ValueError(f"needs = {needs!r}, not one of {', '.join(STATES)}")
        if not functions:
            raise ValueError("it has no functions")
        return Mechanism(
            name,
            _whole(content, "rank"),
            str(content["title"]),
            " ".join(str(content["meaning"]).split()),
            frozenset(each for each in functions if not each.endswith("*")),
            tuple(each[:-1] for each in functions if each.endswith("*")),
            frozenset(_texts(content, "leaves")),
            frozenset(_texts(content, "with")),
            frozenset(_texts(content, "without")),
            needs,
            _optional_text(content, "otherwise"),
            content.get("entry") is True,
            tuple(parse_view(each) for each in _tables(content, "check")),
            _action(content, "stop"),
            tuple(parse_action(each) for each in _tables(content, "fix")),
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, UsageError) as error:
        raise NodescopeError(f"mechanism {name}: {error}") from error


def _texts(content: Mapping[str, object], key: str) -> tuple[str, ...]:
    values = content.get(key, [])
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise TypeError(f"{key} is not a list of texts")
    return tuple(values)


def _tables(content: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    values = content.get(key, [])
    if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
        raise TypeError(f"{key} is not a list of tables")
    return values


def _whole(content: Mapping[str, object], key: str) -> int:
    value = content[key]
    if not isinstance(value, int):
        raise TypeError(f"{key} is not a whole number")
    return value


def _action(content: Mapping[str, object], key: str) -> Action | None:
    value = content.get(key)
    if value is not None and not isinstance(value, dict):
        raise TypeError(f"{key} is not a table")
    return None if value is None else parse_action(value)


def _optional_text(content: Mapping[str, object], key: str) -> str | None:
    return str(content[key]) if key in content else None


@cache
def load_mechanisms() -> tuple[Mechanism, ...]:
    """All of them, the most telling first."""
    folder = files("nodescope.diagnosis.rules") / "mechanisms"
    found = [
        parse_mechanism(entry.name.removesuffix(".toml"), entry.read_text("utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    ]
    return tuple(sorted(found, key=lambda each: (each.rank, each.name)))


def mechanism_named(name: str) -> Mechanism:
    """Return the mechanism of that name."""
    return next(each for each in load_mechanisms() if each.name == name)


def classify(frames: Sequence[str]) -> Mechanism | None:
    """The mechanism a stack belongs to; None if it is of no kind we know."""
    return next((each for each in load_mechanisms() if each.holds(frames)), None)
