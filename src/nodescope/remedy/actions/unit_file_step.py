"""The part that steps on systemd's files share: files changed, then read again by systemd."""

from __future__ import annotations

from collections.abc import Mapping

from nodescope.errors import RemedyError
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.files.file_changes import (
    capture_changes,
    make_changes,
    parse_changes,
    restore_changes,
    where_stands,
)
from nodescope.remedy.files.file_state import FileState
from nodescope.remedy.files.node_files import NodeFiles
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.unit_orders import read_unit_state, reload_units, why_no_unit_name


class UnitFileStep:
    """An operation that makes some paths of systemd as `wanted` says."""

    def wanted(self, step: PlanStep, node: NodeAccess) -> Mapping[str, FileState]:
        """Return the paths that the step changes, and what it makes of them."""
        raise NotImplementedError

    def refuse(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Return the kind's own reason why the step cannot be taken."""
        return None

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Return why the step cannot be taken; the bus is asked before any file is touched."""
        if reason := why_no_unit_name(step.target.name):
            return reason
        state = read_unit_state(node, unit_name(step))
        if state.load == "not-found" and not state.on:
            return f"systemd does not know {unit_name(step)}"
        return self.refuse(step, node)

    def capture(self, step: PlanStep, node: NodeAccess) -> Captured:
        """Read the paths and their folders."""
        return capture_changes(files_of(node), self.wanted(step, node)).to_json()

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Change the files, then have systemd read them."""
        read_unit_state(node, unit_name(step))  # a bus that is gone is noticed here
        make_changes(files_of(node), parse_changes(before))
        reload_units(node)
        return {}

    def stands(self, step: PlanStep, node: NodeAccess, before: Captured) -> Standing:
        """Decide by the files."""
        return where_stands(files_of(node), parse_changes(before))

    def undo(
        self, step: PlanStep, node: NodeAccess, before: Captured, after: Captured
    ) -> UndoOutcome:
        """Restore the files, then have systemd read them."""
        read_unit_state(node, unit_name(step))
        outcome = restore_changes(files_of(node), parse_changes(before))
        reload_units(node)
        return outcome


def files_of(node: NodeAccess) -> NodeFiles:
    """Return the files of systemd on a node."""
    return NodeFiles(node.unit_root)


def unit_name(step: PlanStep) -> str:
    """Return the step's unit; `RemedyError` if it names none."""
    if reason := why_no_unit_name(step.target.name):
        raise RemedyError(reason)
    return step.target.name or ""
