"""Write a drop-in of our own for one unit, then have systemd read it; undone by removing it.

Arguments: `file`, its name (`….conf`), and `content`. A file of that name that is not
ours is never replaced; one that an earlier plan wrote is, and comes back on undo.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodescope.remedy.actions.unit_file_step import UnitFileStep, files_of, unit_name
from nodescope.remedy.files.file_state import FileState
from nodescope.remedy.files.node_files import is_plain_name
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep

HEADER = "# Written by `nodescope fix`. `nodescope fix undo` removes it.\n"
_MOST_CHARACTERS = 64 << 10


class _WriteDropIn(UnitFileStep):
    """The operation."""

    def wanted(self, step: PlanStep, node: NodeAccess) -> Mapping[str, FileState]:
        """Return the drop-in."""
        content = HEADER + step.arguments["content"].rstrip("\n") + "\n"
        return {_path(step): FileState("file", content.encode(), 0o644)}

    def refuse(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a name or content that is none, and a file that is not ours."""
        name, content = step.arguments.get("file", ""), step.arguments.get("content", "")
        if not is_plain_name(name) or not name.endswith(".conf") or name.startswith("."):
            return f"{name!r} is not the name of a drop-in"
        if not content or len(content) > _MOST_CHARACTERS or "\0" in content:
            return f"the content of drop-in {name} is empty, too long, or not text"
        now = files_of(node).read(_path(step))
        if now.kind != "absent" and not now.content.startswith(HEADER.encode()):
            return f"{_path(step)} exists, and is not ours to replace"
        return None


def _path(step: PlanStep) -> str:
    return f"/etc/systemd/system/{unit_name(step)}.d/{step.arguments['file']}"


OPERATION = _WriteDropIn()
