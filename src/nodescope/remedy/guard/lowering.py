"""Decides whether a step leaves a unit or container with less than it has now.

A needed service that gets less memory, fewer tasks or less core time fails its clients as one
that is stopped does, only later. A present value that cannot be read counts as higher.
"""

from __future__ import annotations

from nodescope.errors import SourceError
from nodescope.remedy.engine import open_engine
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.rests_on.container_facts import LIMITS
from nodescope.wire.json_fields import inner, whole

_INFINITY = (1 << 64) - 1
_BUS_NAMES = {"CPUQuota": "CPUQuotaPerSecUSec"}


def takes_away(step: PlanStep, node: NodeAccess) -> bool:
    """Return whether a step may lower a limit, a weight or a protection of its target."""
    if step.kind == "write_drop_in":
        return True  # a drop-in may say anything
    try:
        if step.kind == "set_unit_property":
            return _wanted(step) < _read_property(step, node)
        if step.kind == "set_container_limit":
            return _lowers_container(step, node)
    except (SourceError, ValueError):
        return True
    return False


def _wanted(step: PlanStep) -> int:
    value = step.arguments.get("value", "")
    return _INFINITY if value == "infinity" else int(value)


def _read_property(step: PlanStep, node: NodeAccess) -> int:
    name, prop = step.target.name or "", step.arguments.get("property", "")
    kind = name.rpartition(".")[2].capitalize()
    return int(node.manager.read_property(name, kind, _BUS_NAMES.get(prop, prop)))


def _lowers_container(step: PlanStep, node: NodeAccess) -> bool:
    if "value" not in step.arguments:
        return int(step.arguments.get("times", "")) < 1
    inspected = open_engine(node, step.target.runtime).inspect(step.target.name or "") or {}
    limit = step.arguments.get("limit", "")
    now = whole(inner(inspected, "HostConfig"), LIMITS.get(limit, limit)) or 0
    return now <= 0 or _wanted(step) < now  # without a limit, any is lower
