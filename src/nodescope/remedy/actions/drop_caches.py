"""Drop the page cache of the whole node; it cannot come back, only be read again.

Arguments: `value`, 1 (page cache), 2 (dentries and inodes) or 3 (both).
"""

from __future__ import annotations

from nodescope.remedy.actions.one_way import OneWay
from nodescope.remedy.actions.operation import Captured
from nodescope.remedy.actions.written_value import write_kernel_file
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep


class _DropCaches(OneWay):
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a value that is none."""
        value = step.arguments.get("value")
        return None if value in ("1", "2", "3") else f"drop_caches takes 1, 2 or 3, not {value!r}"

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Write it; the kernel returns when it is done."""
        write_kernel_file(node.places.proc / "sys/vm/drop_caches", step.arguments["value"])
        return {}


OPERATION = _DropCaches()
