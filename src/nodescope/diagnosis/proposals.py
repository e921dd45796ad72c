"""Actions on the root of a chain, by name, in order; none of them is run.

Stopping is proposed only where a link says that the root makes the trouble: it loops, and
leaves behind what is walked. Whoever was merely on the core is to be looked at. What helps
against a mechanism is in its file in `rules/mechanisms/`.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, Root
from nodescope.judgement.recorded_audit import container_of
from nodescope.judgement.remedy_targets import stop_container, stop_unit
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
    if root.kind == "unit":
        return look, stop_unit(case.state(UnitRow, at_ns), root.name)
    rows = sorted(case.state(ContainerRow, at_ns), key=lambda row: row.time_ns)
    return look, stop_container(map(container_of, rows), root.name)


def is_blamed(links: Sequence[Link]) -> bool:
    """Decide whether a chain says that its root makes the trouble."""
    return any(link.kind == "source" for link in links)
