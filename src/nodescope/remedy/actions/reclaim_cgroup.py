"""Have the kernel take back the page cache of one cgroup and everything below it.

Arguments: `file`, `memory.reclaim` (v2) or `memory.force_empty` (v1), and `amount`, in bytes.
Never at the root: there it takes minutes. The kernel answers EAGAIN when it got less than
asked; that is no failure.
"""

from __future__ import annotations

import errno
from pathlib import Path

from nodescope.errors import RemedyError, SourceError
from nodescope.remedy.actions.one_way import OneWay
from nodescope.remedy.actions.operation import Captured
from nodescope.remedy.actions.written_value import write_kernel_file
from nodescope.remedy.files.node_files import is_plain_name
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.sources.kernel_files import read_number
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy

_FILES = {"memory.reclaim": "memory.current", "memory.force_empty": "memory.usage_in_bytes"}
_LESS_THAN_ASKED = (errno.EAGAIN, errno.EBUSY)


class _ReclaimCgroup(OneWay):
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse the root, a path that leads elsewhere, and a kernel without the file."""
        if step.arguments.get("file") not in _FILES:
            return f"not a file that reclaims: {step.arguments.get('file')!r}"
        if not step.arguments.get("amount", "").isdecimal():
            return f"not an amount: {step.arguments.get('amount')!r}"
        path = step.target.name or ""
        if not path.startswith("/") or not all(map(is_plain_name, path.split("/")[1:])):
            return f"not a cgroup below the root: {path!r}"
        if not (_folder(step, node) / step.arguments["file"]).exists():
            return f"{path} has no {step.arguments['file']}: it is gone, or the kernel lacks it"
        return None

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Write the amount; return what was taken back."""
        folder, file = _folder(step, node), step.arguments["file"]
        usage = folder / _FILES[file]
        had = read_number(usage)
        try:
            write_kernel_file(folder / file, step.arguments["amount"])
        except RemedyError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or cause.errno not in _LESS_THAN_ASKED:
                raise
        return {"usage_before": had, "usage_after": read_number(usage)}


def _folder(step: PlanStep, node: NodeAccess) -> Path:
    try:
        hierarchy = find_memory_hierarchy(node.places)
    except SourceError as error:
        raise RemedyError(str(error), hint=error.hint) from error
    return Path(hierarchy.directory(step.target.name or ""))


OPERATION = _ReclaimCgroup()
