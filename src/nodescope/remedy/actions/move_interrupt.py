"""Have other cores serve one interrupt; undone by the list of cores it had.

Arguments: `irq` and `cores`, a list as `smp_affinity_list` has it. It lasts until the next boot,
or until irqbalance moves it.
"""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import RemedyError, UsageError
from nodescope.quantities import parse_cpu_list
from nodescope.remedy.actions.written_value import WrittenValue
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.sources.kernel_files import read_file


class _MoveInterrupt(WrittenValue):
    """The operation."""

    def path(self, step: PlanStep, node: NodeAccess) -> Path:
        """Return the file with the cores that may serve it."""
        irq = step.arguments.get("irq", "")
        if not irq.isdecimal() or not irq.isascii() or len(irq) > 9:
            raise RemedyError(f"not the number of an interrupt: {irq!r}")
        return node.places.proc / "irq" / irq / "smp_affinity_list"

    def value(self, step: PlanStep) -> str:
        """Return the list of cores."""
        cores = step.arguments.get("cores", "")
        try:
            known = parse_cpu_list(cores)
        except UsageError as error:
            raise RemedyError(f"not a list of cores: {cores!r}") from error
        if not known:
            raise RemedyError("no core is named that would serve the interrupt")
        return cores

    def read(self, step: PlanStep, node: NodeAccess) -> str:
        """Return the list of cores now."""
        return read_file(self.path(step, node)).decode("ascii", "replace").strip()

    def same(self, one: str, other: str) -> bool:
        """Decide whether two lists name the same cores."""
        try:
            return sorted(parse_cpu_list(one)) == sorted(parse_cpu_list(other))
        except UsageError:
            return False


OPERATION = _MoveInterrupt()
