"""Whose a cgroup is: a unit, a container or a pod, by the names recorded and by its path."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.judgement.condition import ConditionOwner
from nodescope.records.node_tables import CgroupNameRow
from nodescope.sources.cgroups.owner_by_path import find_owner


class CgroupOwners:
    """The owners of cgroups at a moment."""

    def __init__(self, names: Iterable[CgroupNameRow]) -> None:
        self._names = {row.cgroup: row for row in names}

    def find(self, path: str) -> ConditionOwner:
        """Return the innermost unit, container or pod that a cgroup lies in; else the cgroup."""
        above = path
        while above:
            row = self._names.get(above)
            named = None if row is None else _named(row)
            if named is not None:
                return named
            above = above.rpartition("/")[0]
        said = find_owner(path)
        if said is not None and said.container_id:
            return ConditionOwner("container", said.container_id[:12])
        if said is not None and said.pod_uid:
            return ConditionOwner("pod", said.pod_uid)
        if said is not None and said.kind == "unit" and said.unit:
            return ConditionOwner("unit", said.unit)
        return ConditionOwner("cgroup", path) if path.strip("/") else ConditionOwner("node", "node")


def pod_owner(namespace: str | None, pod: str, container: str | None) -> ConditionOwner:
    """Return a pod as an owner, with the container of it if one is meant."""
    inside = f" ({container})" if container else ""
    return ConditionOwner("pod", f"{namespace or 'default'}/{pod}{inside}")


def _named(row: CgroupNameRow) -> ConditionOwner | None:
    if row.pod:
        return pod_owner(row.namespace, row.pod, row.container)
    if row.container or row.container_id:
        return ConditionOwner("container", row.container or (row.container_id or "")[:12])
    if row.unit and not row.unit.endswith(".slice") and row.kind == "unit":
        return ConditionOwner("unit", row.unit)
    return None  # a session, a slice: nobody's in particular
