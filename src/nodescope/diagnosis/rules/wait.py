"""Waits: what a blocked task waits for, told by families of the kernel's functions.

The table is `waits.toml`; it says how a stack is matched. Call traces of the kernel's log and
the recorder's own look at blocked tasks are read by the same table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

LEADS = ("", "device", "lock")


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that tasks wait for."""

    name: str
    title: str
    meaning: str
    functions: tuple[str, ...]
    with_functions: tuple[str, ...]
    leads: str  # where the cause is looked for next

    def find(self, frames: Sequence[str]) -> str | None:
        """Return the innermost function that tells this wait; None if the stack is not of it."""
        names = [frame.split(".", 1)[0].split("+", 1)[0] for frame in frames]
        if self.with_functions and not any(_fits(name, self.with_functions) for name in names):
            return None
        return next((name for name in reversed(names) if _fits(name, self.functions)), None)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(
        name.startswith(each[:-1]) if each.endswith("*") else name == each for each in patterns
    )


@cache
def load_waits() -> tuple[Wait, ...]:
    """Return the table, the most telling first."""
    text = (files("nodescope.diagnosis.rules") / "waits.toml").read_text("utf-8")
    return tuple(
        Wait(
            each["name"], each["title"], each["meaning"], tuple(each["functions"]),
            tuple(each.get("with", ())), each.get("leads", ""),
        )
        for each in tomllib.loads(text)["wait"]
    )  # fmt: skip


def classify_wait(frames: Sequence[str]) -> tuple[Wait, str] | None:
    """Return what a stack waits for, and the function that shows it; None if no rule knows it."""
    for wait in load_waits():
        function = wait.find(frames)
        if function is not None:
            return wait, function
    return None
