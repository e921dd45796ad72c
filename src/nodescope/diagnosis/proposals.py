"""Actions on the root of a chain, by name, in order; none of them is run.

Stopping is proposed only where a link says that the root makes the trouble: it loops, and
leaves behind what is walked. Whoever was merely on the core is to be looked at. What helps
against a mechanism is in its file in `rules/mechanisms/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, Root
from nodescope.records.action import Action, Target, TargetName
from nodescope.records.node_tables import ContainerRow, UnitRow

# Who can be looked at, unlike a state.
_PEOPLE: dict[str, TargetName] = {
    "unit": "unit", "container": "container", "pod": "pod", "process": "process",
}  # fmt: skip


def propose(case: Case, links: Sequence[Link], root: Root, at_ns: int) -> tuple[Action, ...]:
    """Return the first steps: to look at the root, and to stop it where it makes the trouble."""
    if root.kind not in _PEOPLE:
        return ()
    target, show = Target(_PEOPLE[root.kind], root.name), links[-1].show
    if not is_blamed(links):
        return (Action("look", target, note="nothing shows that it is broken", view=show),)
    look = Action("look", target, note="what is it for, and who needs it?", view=show)
    stop = _stop_unit if root.kind == "unit" else _stop_container
    return look, stop(case, root.name, at_ns)


def is_blamed(links: Sequence[Link]) -> bool:
    """Decide whether a chain says that its root makes the trouble."""
    return any(link.kind == "source" for link in links)


def _stop_unit(case: Case, name: str, at_ns: int) -> Action:
    unit = next((row for row in case.state(UnitRow, at_ns) if row.unit == name), None)
    if unit is None:
        return Action("stop_unit", Target("unit", name))
    elsewhere = _above_slices(unit.cgroup or "") or None
    return Action("stop_unit", Target("unit", name, elsewhere, file_state=unit.file_state))


def _above_slices(cgroup: str) -> str:
    """Return where in the tree the slices of a systemd begin; nowhere for the node's own."""
    parts = cgroup.split("/")
    first = next((at for at, part in enumerate(parts) if part.endswith(".slice")), 1)
    return "/".join(parts[:first])


def _stop_container(case: Case, name: str, at_ns: int) -> Action:
    rows = [row for row in case.state(ContainerRow, at_ns) if row.name == name]
    row = max(rows, key=lambda row: row.time_ns, default=None)
    if row is None:
        return Action("stop_container", Target("container", name))
    pod = f"{row.namespace or 'default'}/{row.pod}" if row.pod else None
    return Action("stop_container", Target("container", name, pod, row.runtime))
