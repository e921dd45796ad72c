"""Write a sysctl, or a file of /sys; undone by writing the earlier value back.

Arguments: `value`. The target is the sysctl's name, or a path below /proc/sys or /sys. It lasts
until the next boot.
"""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import RemedyError
from nodescope.remedy.actions.written_value import WrittenValue
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.steps.kernel_values import read_value, value_path


class _SetKernelValue(WrittenValue):
    """The operation."""

    def path(self, step: PlanStep, node: NodeAccess) -> Path:
        """Return its file; refuse a link that leads out of /proc/sys and /sys."""
        path = value_path(step.target.name or "", node)
        real = path.resolve()
        homes = [each.resolve() for each in (node.places.proc / "sys", node.places.sys)]
        if not any(real.is_relative_to(each) for each in homes):
            raise RemedyError(f"{path} leads to {real}: not a value of the kernel")
        return path

    def value(self, step: PlanStep) -> str:
        """Return what is to be written."""
        return step.arguments.get("value", "")

    def read(self, step: PlanStep, node: NodeAccess) -> str:
        """Return the value now; of a choice, what is chosen."""
        return read_value(step.target.name or "", node)


OPERATION = _SetKernelValue()
