"""Whose each cgroup is: the table `cgroup_names`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.records.node_tables import CgroupNameRow
from nodescope.sources.cgroups.hierarchies import Hierarchy, read_hierarchies, walk
from nodescope.sources.cgroups.owner_by_path import CgroupOwner, find_owner
from nodescope.sources.containers.names_on_disk import ContainerNames, KnownNames
from nodescope.sources.places import Places

_MAX_CGROUPS = 20_000


class NamesObserver:
    """Walks the hierarchies in which pods, containers and units are, and names what is new."""

    interval_ns = 30 * SECOND_NS
    patient = False

    def __init__(self, places: Places) -> None:
        self._places = places
        self._hierarchies: list[Hierarchy] = []
        self._names = ContainerNames(places)
        self._owners: dict[str, CgroupOwner | None] = {}
        self._said: dict[str, KnownNames] = {}

    def begin_segment(self) -> None:
        self._said = {}

    def observe(self, now_ns: int) -> Observation:
        if not self._hierarchies:
            self._hierarchies = _choose(read_hierarchies(self._places))
        before, self._owners = self._owners, {}
        for path in self._paths():
            self._owners[path] = before[path] if path in before else find_owner(path)
        said = Observation()
        self._names.begin()
        still: dict[str, KnownNames] = {}
        for path, owner in self._owners.items():
            if owner is None:
                continue
            names = still[path] = self._names.find(owner)
            if self._said.get(path) != names:
                said.add(_row(now_ns, path, owner, names))
        self._said = still
        return said

    def _paths(self) -> Iterable[str]:
        return dict.fromkeys(
            path
            for hierarchy in self._hierarchies
            for path, _ in islice(walk(hierarchy.mount), _MAX_CGROUPS)
        )

    def close(self) -> None:
        """Nothing is held."""


def _choose(hierarchies: list[Hierarchy]) -> list[Hierarchy]:
    """Containers are where memory is accounted, units where systemd tracks them."""
    chosen = [
        each for each in hierarchies if "memory" in each.controllers or each.name == "name=systemd"
    ]
    return chosen or hierarchies[:1]


def _row(now_ns: int, path: str, owner: CgroupOwner, names: KnownNames) -> CgroupNameRow:
    return CgroupNameRow(
        time_ns=now_ns,
        cgroup=path,
        kind=owner.kind,
        runtime=owner.runtime or names.runtime,
        unit=owner.unit,
        namespace=names.namespace,
        pod=names.pod,
        pod_uid=owner.pod_uid,
        container=names.container,
        container_id=owner.container_id,
    )


def make(setting: Setting) -> NamesObserver:
    """An observer of this node's cgroups."""
    return NamesObserver(setting.places)
