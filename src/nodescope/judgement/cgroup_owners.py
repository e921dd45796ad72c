"""Whose a cgroup is: a unit, a container or a pod, by the names recorded and by its path."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.judgement.condition import ConditionOwner
from nodescope.records.node_tables import CgroupNameRow, ContainerRow
from nodescope.sources.cgroups.owner_by_path import find_owner


class CgroupOwners:
    """The owners of cgroups at a moment."""

    def __init__(
        self, names: Iterable[CgroupNameRow], containers: Iterable[ContainerRow] = ()
    ) -> None:
        self._names = {row.cgroup: row for row in names}
        self._containers = {row.id: row for row in containers if row.name}

    def find(self, path: str) -> ConditionOwner:
        """Return the innermost unit, container or pod that a cgroup lies in; else the cgroup."""
        above = path
        while above:
            row = self._names.get(above)
            named = None if row is None else name_owner(row)
            if named is not None:
                return named
            above = above.rpartition("/")[0]
        said = find_owner(path)
        if said is not None and said.container_id:
            return self._find_container(said.container_id)
        if said is not None and said.pod_uid:
            return ConditionOwner("pod", said.pod_uid)
        if said is not None and said.kind == "unit" and said.unit:
            return ConditionOwner("unit", said.unit)
        return ConditionOwner("cgroup", path) if path.strip("/") else ConditionOwner("node", "node")

    def _find_container(self, identifier: str) -> ConditionOwner:
        row = self._containers.get(identifier)
        if row is None:
            return ConditionOwner("container", identifier[:12])
        if row.pod:
            return pod_owner(row.namespace, row.pod, row.name)
        return ConditionOwner("container", row.name or identifier[:12])


def name_owner(row: CgroupNameRow) -> ConditionOwner | None:
    """Return whom a name row names; None for a session or a slice, which are nobody's."""
    if row.pod:
        return pod_owner(row.namespace, row.pod, row.container)
    if row.container or row.container_id:
        return ConditionOwner("container", row.container or (row.container_id or "")[:12])
    if row.unit and row.unit.endswith(".service"):
        return ConditionOwner("unit", row.unit)
    return None


def pod_owner(namespace: str | None, pod: str, container: str | None) -> ConditionOwner:
    """Return a pod as an owner, with the container of it if one is meant."""
    inside = f" ({container})" if container else ""
    return ConditionOwner("pod", f"{namespace or 'default'}/{pod}{inside}")
