"""Steps that let something frozen go on, or make room on a file system."""

from __future__ import annotations

import os
from pathlib import Path

from nodescope.quantities import format_bytes
from nodescope.records.action import Target
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep, Predicted
from nodescope.remedy.proposals import Proposal
from nodescope.remedy.steps.expansion import Expansion
from nodescope.sources.systemd.locations import journal_folders

_LEAST_BYTES = 64 << 20  # of archived journals: fewer are not what fills a disk
_KEPT_BYTES = 32 << 20


def expand_thaw(proposal: Proposal) -> Expansion:
    """Return the step that thaws a file system or a cgroup."""
    target = proposal.action.target
    if target is None or target.name is None:
        return Expansion(cannot=("what is frozen is not known by name: nothing is thawed",))
    command: tuple[str, ...] = ("fsfreeze", "--unfreeze", target.name)
    if target.kind != "mount":
        command = ("tee", f"{target.name}/cgroup.freeze")
    return Expansion((
        PlanStep(
            "thaw", target, proposal.why, {"what": target.kind},
            (f"{target.kind} {target.name}: frozen → runs",), command,
            # Whoever froze a file system holds its lock: it cannot be frozen for them.
            "never" if target.kind == "mount" else "freeze it again",
        ),
    ))  # fmt: skip


def expand_free_space(proposal: Proposal, node: NodeAccess) -> Expansion:
    """Return the step that removes archived journal files, if they lie on that file system."""
    target = proposal.action.target
    mount = None if target is None or target.name is None else target.name
    if mount is None:
        return Expansion(cannot=("the full file system is not known by name",))
    for folder in journal_folders(node.places):
        archived = _archived(folder)
        total = sum(size for _, size in archived)
        if total >= _LEAST_BYTES and _is_on(folder, mount, node):
            return Expansion((_vacuum(mount, folder, total, proposal.why, node),))
    return Expansion(
        cannot=(f"what fills {mount} is somebody's data: only its owner can decide what goes",)
    )


def _vacuum(mount: str, folder: Path, total: int, why: str, node: NodeAccess) -> PlanStep:
    freed = total - _KEPT_BYTES
    shown = f"/{folder.relative_to(node.unit_root)}"
    because = f"archived journal files take {format_bytes(total)}"
    return PlanStep(
        "vacuum_journal", Target("mount", mount), why,
        {"folder": str(folder), "keep_bytes": str(_KEPT_BYTES)},
        (f"{shown}: archived files beyond {format_bytes(_KEPT_BYTES)} are deleted, oldest first",),
        ("journalctl", f"--vacuum-size={_KEPT_BYTES}"), "never",
        (Predicted("disk_bytes", freed, 0.5 * freed, float(total), because),),
    )  # fmt: skip


def _archived(folder: Path) -> list[tuple[Path, int]]:
    """Return the journal files that are no longer written, with their sizes."""
    try:
        return [(path, path.stat().st_size) for path in folder.glob("*/*@*.journal")]
    except OSError:
        return []


def _is_on(folder: Path, mount: str, node: NodeAccess) -> bool:
    try:
        return os.stat(folder).st_dev == os.stat(node.places.inside(mount)).st_dev
    except OSError:
        return False
