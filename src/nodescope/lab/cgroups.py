"""Cgroups as the lab makes them: where, and by which names, under v1 and under v2.

Only the names of files differ, and that under v2 a cgroup says which controllers those
below it have (`cgroup.subtree_control`), and has then no processes of its own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import SourceAbsent, UsageError
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.places import Places

_PERIOD_US = 100_000  # the kernel's own, under both


@dataclass(frozen=True, slots=True)
class Controller:
    """One controller: the mount that it is on, and what its files are called there."""

    name: str
    mount: Path
    unified: bool  # cgroup v2

    def hand_down(self, cgroup: Path) -> None:
        """Let the cgroups below one have the controller; under v1 they all do."""
        if self.unified:
            (cgroup / "cgroup.subtree_control").write_text(f"+{self.name}")

    @property
    def used(self) -> str:
        """The file with the memory that a cgroup uses."""
        return "memory.current" if self.unified else "memory.usage_in_bytes"

    @property
    def limit(self) -> str:
        """The file with the memory that it may use."""
        return "memory.max" if self.unified else "memory.limit_in_bytes"

    def limit_cpu(self, cgroup: Path, share: float) -> None:
        """Let a cgroup have a share of one core."""
        quota_us = round(share * _PERIOD_US)
        if self.unified:
            (cgroup / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
        else:
            (cgroup / "cpu.cfs_quota_us").write_text(str(quota_us))


def find_controller(name: str, places: Places | None = None) -> Controller:
    """Where a controller is; `SourceAbsent` where it is nowhere."""
    places = places or Places()
    for each in read_hierarchies(places):
        if name in each.controllers:
            return Controller(name, each.mount, each.version == 2)
    raise SourceAbsent(
        places.proc / "self/mounts", f"no cgroup hierarchy has the {name} controller",
        hint=f"mount one: `mount -t cgroup -o {name} cgroup DIR`, or boot with it",
    )  # fmt: skip


def require(*names: str, places: Places | None = None) -> None:
    """Refuse where cgroups with some controllers cannot be made."""
    for name in names:
        found = find_controller(name, places)
        if not os.access(found.mount, os.W_OK):
            raise UsageError(
                f"no cgroups can be made in {found.mount}: it is not writable",
                hint="in a container: run it privileged, with the host's cgroups",
            )
        control = found.mount / "cgroup.subtree_control"
        if found.unified and name not in control.read_text().split():
            raise UsageError(
                f"cgroups below {found.mount} do not have the {name} controller",
                hint=f"`echo +{name} > {control}`",
            )
