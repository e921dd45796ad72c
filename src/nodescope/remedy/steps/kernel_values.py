"""Steps that write a value of the kernel: a sysctl, or a file of /sys."""

from __future__ import annotations

import re
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.records.action import Target
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.proposals import Proposal
from nodescope.remedy.steps.expansion import Expansion
from nodescope.sources.kernel_files import read_file

_CHOICE = re.compile(r"\[([^]]+)\]")  # `always [madvise] never`: the chosen one is in brackets


def expand_set_kernel_value(proposal: Proposal, node: NodeAccess) -> Expansion:
    """Return the step that writes the value a proposal names."""
    target, value = proposal.action.target, proposal.action.value
    if target is None or target.name is None or value is None:
        return Expansion(cannot=("the kernel's value to set is not known by name",))
    now = read_value(target.name, node)
    if now == value:
        return Expansion(cannot=(f"{target.name} is {value} already",))
    return Expansion((value_step(target.name, now, value, proposal.why),))


def value_step(name: str, now: str, value: str, why: str) -> PlanStep:
    """Return the step that writes a value of the kernel until the next boot."""
    command = ("tee", name) if name.startswith("/") else ("sysctl", "-w", f"{name}={value}")
    return PlanStep(
        "set_kernel_value", Target("kernel_value", name), why, {"value": value, "was": now},
        (f"{name}: {now} → {value}, until the next boot",), command, f"write {now} back",
    )  # fmt: skip


def value_path(name: str, node: NodeAccess) -> Path:
    """Return the file of a kernel value: a path of /proc/sys or /sys, or a sysctl's name."""
    if name.startswith("/"):
        parts = Path(name).parts
        if (parts[:3] != ("/", "proc", "sys") and parts[:2] != ("/", "sys")) or ".." in parts:
            raise UsageError(f"{name} is not a value of the kernel")
        return node.places.inside(name)
    if not re.fullmatch(r"[a-z0-9_][\w.:@-]*(/[\w.:@-]+)*", name) or ".." in name:
        raise UsageError(f"{name!r} is not the name of a sysctl")
    # An interface's name may have a dot: sysctl(8) then takes `/` between the parts.
    parts = tuple(name.split("/")) if "/" in name else tuple(name.split("."))
    return node.places.proc.joinpath("sys", *parts)


def read_value(name: str, node: NodeAccess) -> str:
    """Read a kernel value as it would be written back; `SourceError` if it cannot be."""
    text = read_file(value_path(name, node)).decode("utf-8", "replace").strip()
    chosen = _CHOICE.search(text)
    return chosen[1] if chosen else text
