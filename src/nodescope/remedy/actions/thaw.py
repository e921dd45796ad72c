"""Let a frozen cgroup or file system go on; undone by freezing the same cgroup again.

Arguments: `what`, `cgroup` or `mount`. The target is the cgroup's path in its hierarchy, or the
mount point. A file system is not frozen again by undo: whoever froze it has to.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from nodescope.errors import RemedyError, SourceError
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.actions.written_value import write_kernel_file
from nodescope.remedy.files.node_files import is_plain_name
from nodescope.remedy.files.system_errors import translated
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.kernel_files import read_text

_FITHAW = 0xC0045878
# By version: the file, its word for running, its words for frozen.
_FREEZERS = {
    2: ("cgroup.freeze", "0", ("1",)),
    1: ("freezer.state", "THAWED", ("FROZEN", "FREEZING")),
}


class CgroupGone(RemedyError):
    """A cgroup that is not there, or that nothing can freeze."""


class _Thaw:
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse what does not exist, or is not frozen."""
        if step.arguments.get("what") == "mount":
            path = node.places.inside(step.target.name or "/")
            return None if os.path.ismount(path) else f"{path} is not a mount point"
        if step.arguments.get("what") != "cgroup":
            return f"cannot thaw a {step.arguments.get('what')!r}"
        file, _, frozen = _freezer(step, node)
        if read_text(file) not in frozen:
            return f"{step.target.name} is not frozen"
        return None

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Store that it was frozen, and which cgroup of that name it is."""
        if step.arguments.get("what") == "mount":
            return {"frozen": True}
        return {"frozen": True, "inode": _inode(_freezer(step, node)[0])}

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Thaw it."""
        if step.arguments["what"] == "mount":
            _thaw_mount(node.places.inside(step.target.name or "/"))
        else:
            file, runs, _ = _freezer(step, node)
            write_kernel_file(file, runs)
        return {}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by the cgroup's state; a file system shows none, and thawing twice is harmless."""
        if step.arguments["what"] == "mount":
            return "after"
        file, _, frozen = _freezer(step, node)
        return "before" if read_text(file) in frozen else "after"

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Freeze a cgroup again; leave a file system running."""
        name = step.target.name or ""
        if step.arguments["what"] == "mount":
            return UndoOutcome((), (f"{name} is not frozen again: whoever froze it has to",))
        try:
            file, _, frozen = _freezer(step, node)
        except CgroupGone:
            return UndoOutcome((), (f"{name} is gone",))
        if _inode(file) != before.get("inode"):
            said = f"{name} was made anew since, and is not frozen"
            return UndoOutcome((), (said,))
        write_kernel_file(file, frozen[0])
        return UndoOutcome((f"{name} is frozen again",))


def _freezer(step: PlanStep, node: NodeAccess) -> tuple[Path, str, tuple[str, ...]]:
    """Return the file that freezes a cgroup, its word for running, its words for frozen."""
    path = step.target.name or ""
    if not path.startswith("/") or not all(map(is_plain_name, path.split("/")[1:])):
        raise RemedyError(f"not a cgroup below the root: {path!r}")
    try:
        hierarchies = read_hierarchies(node.places)
    except SourceError as error:
        raise RemedyError(str(error), hint=error.hint) from error
    for each in sorted(hierarchies, key=lambda each: each.version, reverse=True):
        name, runs, frozen = _FREEZERS[each.version]
        file = each.mount / path.lstrip("/") / name
        if file.exists():
            return file, runs, frozen
    raise CgroupGone(f"{path} is gone, or nothing can freeze it")


def _inode(file: Path) -> int | None:
    """Return the identity of the cgroup that a file of its own belongs to."""
    try:
        return file.parent.stat().st_ino
    except OSError:
        return None


def _thaw_mount(path: Path) -> None:
    with translated(str(path)):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.ioctl(descriptor, _FITHAW, 0)
        except OSError as error:
            if error.errno != errno.EINVAL:  # it is not frozen
                raise
        finally:
            os.close(descriptor)


OPERATION = _Thaw()
