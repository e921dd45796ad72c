"""Delete the oldest archived files of systemd's journal, down to a size; they cannot come back.

Arguments: `folder`, the journal's (/var/log/journal or /run/log/journal of the node), and
`keep_bytes`. Files that journald still writes to have no `@` in their names and stay.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import RemedyError
from nodescope.remedy.actions.one_way import OneWay
from nodescope.remedy.actions.operation import Captured
from nodescope.remedy.files.system_errors import translated
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.sources.systemd.locations import journal_folders

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class _ArchivedFile:
    machine: str
    name: str
    mtime_ns: int
    bytes: int


class _VacuumJournal(OneWay):
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a folder that is not the journal's."""
        folder = step.arguments.get("folder", "")
        if Path(folder) not in journal_folders(node.places):
            return f"{folder!r} is not where this node's journal lies"
        if not step.arguments.get("keep_bytes", "").isdecimal():
            return f"not a size: {step.arguments.get('keep_bytes')!r}"
        return None

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Delete the oldest until the rest fits."""
        if reason := self.check(step, node):
            raise RemedyError(reason)
        folder, keep = Path(step.arguments["folder"]), int(step.arguments["keep_bytes"])
        with translated(str(folder)):
            opened = os.open(folder, _FOLDER)
            try:
                return _vacuum(opened, keep)
            finally:
                os.close(opened)


def _vacuum(folder: int, keep: int) -> Captured:
    files = sorted(_archived(folder), key=lambda each: each.mtime_ns)
    left = sum(each.bytes for each in files)
    deleted = freed = 0
    for each in files:
        if left <= keep:
            break
        inner = os.open(each.machine, _FOLDER, dir_fd=folder)
        try:
            os.unlink(each.name, dir_fd=inner)
        finally:
            os.close(inner)
        left -= each.bytes
        freed += each.bytes
        deleted += 1
    return {"deleted": deleted, "bytes": freed}


def _archived(folder: int) -> list[_ArchivedFile]:
    found = []
    for machine in os.listdir(folder):
        try:
            inner = os.open(machine, _FOLDER, dir_fd=folder)
        except OSError:
            continue  # not a folder
        try:
            for name in os.listdir(inner):
                entry = os.stat(name, dir_fd=inner, follow_symlinks=False)
                archived = "@" in name and name.endswith((".journal", ".journal~"))
                if archived and stat.S_ISREG(entry.st_mode):
                    size = entry.st_blocks * 512
                    found.append(_ArchivedFile(machine, name, entry.st_mtime_ns, size))
        finally:
            os.close(inner)
    return found


OPERATION = _VacuumJournal()
