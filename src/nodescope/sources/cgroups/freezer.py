"""Frozen cgroups: `cgroup.events` of v2 (v5.2), `freezer.state` of v1.

A task of a frozen cgroup does not run until somebody thaws it (`docker pause`, a runtime that
takes a snapshot): it is blocked, and nothing is wrong with what it waits for.
"""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import SourceError
from nodescope.sources.cgroups.hierarchies import UNIFIED, read_hierarchies
from nodescope.sources.kernel_files import read_text
from nodescope.sources.places import Places


class Freezers:
    """Tells of a process's cgroups whether one is frozen."""

    def __init__(self, places: Places) -> None:
        try:
            found = read_hierarchies(places)
        except SourceError:
            found = []
        self._mounts: dict[str, Path] = {
            name: each.mount
            for each in found
            for name in (("",) if each.name == UNIFIED else tuple(each.controllers))
            if name in ("", "freezer")
        }

    def is_frozen(self, cgroups: bytes) -> bool | None:
        """Decide by the content of `/proc/PID/cgroup`; None where neither hierarchy tells."""
        answers = []
        for line in cgroups.decode("utf-8", "replace").splitlines():
            fields = line.split(":", 2)
            if len(fields) != 3:
                continue
            for controller in fields[1].split(","):
                mount = self._mounts.get(controller)
                if mount is not None:
                    answers.append(read_frozen(mount / fields[2].lstrip("/"), bool(controller)))
        known = [each for each in answers if each is not None]
        return any(known) if known else None


def read_frozen(cgroup: Path, v1: bool) -> bool | None:
    """Return whether a cgroup is frozen, by itself or with one above it; None: not told."""
    if v1:
        state = read_text(cgroup / "freezer.state")
        return None if state is None else state != "THAWED"
    return parse_frozen(read_text(cgroup / "cgroup.events"))


def parse_frozen(events: str | None) -> bool | None:
    """Parse `cgroup.events`; None where it has no such line: the root, and before v5.2."""
    for line in (events or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "frozen":
            return value.strip() == "1"
    return None
