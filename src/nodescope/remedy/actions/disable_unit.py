"""Remove the links in /etc and /run that start a unit at boot; undone by the same links.

Takes no arguments. Units that the unit names in `Also=` keep their links: each is a step of
its own, which the guard judges.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodescope.remedy.actions.operation import Captured, Standing
from nodescope.remedy.actions.unit_file_step import UnitFileStep, unit_name
from nodescope.remedy.files.file_state import ABSENT, FileState
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.unit_links import find_enabling_links


class _DisableUnit(UnitFileStep):
    """The operation."""

    def wanted(self, step: PlanStep, node: NodeAccess) -> Mapping[str, FileState]:
        """Return every link that enables the unit, as absent."""
        return dict.fromkeys(find_enabling_links(node.unit_root, unit_name(step)), ABSENT)

    def refuse(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse where no link is to be removed."""
        if not self.wanted(step, node):
            return (
                f"no link in /etc/systemd/system or /run/systemd/system enables "
                f"{unit_name(step)}: mask it to keep it off"
            )
        return None

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by the links; a new one elsewhere enables the unit as well."""
        standing = super().stands(step, node, before)
        return "before" if standing == "after" and self.wanted(step, node) else standing


OPERATION = _DisableUnit()
