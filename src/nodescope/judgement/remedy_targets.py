"""Units and containers as targets of actions, with what a command needs to know of them."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.records.action import Action, Target
from nodescope.records.node_tables import UnitRow
from nodescope.sources.containers.container import Container


def stop_unit(units: Iterable[UnitRow], name: str) -> Action:
    """Return the action that stops a unit."""
    unit = next((row for row in units if row.unit == name), None)
    if unit is None:
        return Action("stop_unit", Target("unit", name))
    elsewhere = _above_slices(unit.cgroup or "") or None
    return Action("stop_unit", Target("unit", name, elsewhere, file_state=unit.file_state))


def stop_container(containers: Iterable[Container], name: str) -> Action:
    """Return the action that stops the container of a name; the last of several says more."""
    container = next((each for each in reversed(list(containers)) if each.name == name), None)
    if container is None:
        return Action("stop_container", Target("container", name))
    pod = f"{container.namespace or 'default'}/{container.pod}" if container.pod else None
    return Action("stop_container", Target("container", name, pod, container.runtime))


def _above_slices(cgroup: str) -> str:
    """Return where in the tree the slices of a systemd begin; nowhere for the node's own."""
    parts = cgroup.split("/")
    first = next((at for at, part in enumerate(parts) if part.endswith(".slice")), 1)
    return "/".join(parts[:first])
