"""Keep anything from starting a unit: a link to /dev/null in /etc, or a drop-in.

Where the unit's own file lies in /etc/systemd/system there is no room for the link, and the
file is not ours to move: a drop-in adds a condition that is never met. Takes no arguments.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodescope.errors import RemedyError
from nodescope.remedy.actions.operation import Captured
from nodescope.remedy.actions.unit_file_step import UnitFileStep, files_of, unit_name
from nodescope.remedy.files.file_state import FileState
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.unit_orders import ordered, read_unit_state

_FOLDER = "/etc/systemd/system"
# Drop-ins count in the order of their names: a later one could reset the condition.
OFF_DROP_IN = "zz-nodescope-off.conf"
_CONDITION = ("ConditionPathExists", "!/")  # the root exists everywhere
_OFF = (
    "# Written by `nodescope fix`: keeps this unit off. `nodescope fix undo` removes it.\n"
    f"[Unit]\n{_CONDITION[0]}={_CONDITION[1]}\n"
)


class _MaskUnit(UnitFileStep):
    """The operation."""

    def wanted(self, step: PlanStep, node: NodeAccess) -> Mapping[str, FileState]:
        """Return the link, or the drop-in."""
        path, state = mask_of(node, unit_name(step))
        return {path: state}

    def refuse(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse where it is masked, or a file of somebody else is in the way."""
        path, state = mask_of(node, unit_name(step))
        now = files_of(node).read(path)
        if now.resembles(state):
            return f"{unit_name(step)} is kept off already by {path}"
        if now.kind != "absent":
            return f"{path} exists, and is not ours to replace"
        return None

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Make it, then ask systemd whether it counts."""
        super().apply(step, node, before)
        name = unit_name(step)
        if read_unit_state(node, name).load == "masked":
            return {}
        with ordered(f"read the conditions of {name}"):
            found = node.manager.read_property(name, "Unit", "Conditions")
        if not any(each[0] == _CONDITION[0] and each[2] and each[3] == "/" for each in found):
            raise RemedyError(
                f"{name} is neither masked nor kept off by its conditions",
                hint=f"another drop-in may reset them: see `systemctl cat {name}`",
            )
        return {}


def mask_of(node: NodeAccess, name: str) -> tuple[str, FileState]:
    """Return the path that keeps a unit off, and what it has to be."""
    own = files_of(node).read(f"{_FOLDER}/{name}")
    if own.kind == "absent" or own.content == b"/dev/null":
        return f"{_FOLDER}/{name}", FileState("link", b"/dev/null", 0o777)
    return f"{_FOLDER}/{name}.d/{OFF_DROP_IN}", FileState("file", _OFF.encode(), 0o644)


OPERATION = _MaskUnit()
