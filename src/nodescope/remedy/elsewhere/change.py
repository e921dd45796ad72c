"""The lasting part of a plan, free of the node it was made on.

Only what keeps the trouble from coming back can be shipped elsewhere: units that stay off,
properties of units, values of the kernel. What frees memory on one node is of no use to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.remedy.plan import PlanStep

# A name in a generated file must not be able to become more than a name.
_PLAIN = re.compile(r"[A-Za-z0-9:_.@\\-]+")


@dataclass(frozen=True, slots=True)
class LastingChange:
    """Units to keep off, properties to set, values of the kernel to write."""

    off: tuple[str, ...] = ()
    properties: tuple[tuple[str, str, str], ...] = ()  # unit, property, value
    values: tuple[tuple[str, str], ...] = ()  # sysctl or path, value
    left_out: tuple[str, ...] = ()  # names that no generated file may carry

    def __bool__(self) -> bool:
        return bool(self.off or self.properties or self.values)


def find_lasting_change(steps: Iterable[PlanStep]) -> LastingChange:
    """Return the part of a plan that belongs into an image or a configuration."""
    off: dict[str, None] = {}
    properties, values, left = [], [], []
    for step in steps:
        name = step.target.name or ""
        if step.kind not in ("stop_unit", "disable_unit", "mask_unit", "set_unit_property",
                             "set_kernel_value"):  # fmt: skip
            continue
        value = step.arguments.get("value", "")
        if not _is_plain(name) or not _is_plain(value, allow="/ \t"):
            left.append(name)
        elif step.kind == "set_unit_property":
            properties.append((name, step.arguments["property"], _as_written(step, value)))
        elif step.kind == "set_kernel_value":
            values.append((name, value))
        else:
            off[name] = None
    return LastingChange(tuple(off), tuple(properties), tuple(values), tuple(dict.fromkeys(left)))


def _as_written(step: PlanStep, value: str) -> str:
    """Return a property's value as unit files have it: systemd counts a quota in microseconds."""
    if step.arguments["property"] == "CPUQuota" and value.isdecimal():
        return f"{int(value) / 10_000:g}%"
    return value


def _is_plain(text: str, allow: str = "/") -> bool:
    bare = text.translate({ord(each): None for each in allow})
    return not bare or _PLAIN.fullmatch(bare) is not None
