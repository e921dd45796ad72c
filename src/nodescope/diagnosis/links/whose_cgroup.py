"""Whose cgroup it is: the unit, container or pod that a path belongs to.

The names that the recorder looked up come first, then what containers report of themselves,
then the path alone (`sources/cgroups/owner_by_path`). Paths come from samples, tables and
lines of the kernel's log; those of a v1 hierarchy may begin with its mount point.
"""

from __future__ import annotations

from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.diagnosis.finding import Root
from nodescope.judgement.cgroup_owners import name_owner
from nodescope.quantities import MINUTE_NS
from nodescope.recording.window import Window
from nodescope.records.event_details import ContainerDetails
from nodescope.records.node_tables import CgroupNameRow, ContainerRow
from nodescope.sources.cgroups.owner_by_path import find_owner as read_path

_MOUNT = "/sys/fs/cgroup"
_CONTROLLERS = frozenset([
    "memory", "pids", "cpu", "cpuacct", "cpuset", "blkio", "devices", "freezer", "hugetlb",
    "net_cls", "net_prio", "perf_event", "misc", "rdma", "systemd", "unified",
])  # fmt: skip
_SEEN_AFTER_NS = MINUTE_NS  # names are looked up twice a minute: one may be known only then
_CONTAINER_KINDS = ("container_started", "container_exit", "container_restart")


def plain_path(path: str) -> str:
    """Return a path from the root of its hierarchy, without mount point and controller."""
    text = path.removesuffix(" (deleted)").removeprefix(_MOUNT)
    first, _, rest = text.strip("/").partition("/")
    mounted = path.startswith(_MOUNT) or bool(rest)
    if first and mounted and _CONTROLLERS.issuperset(first.split(",")):
        text = rest
    return "/" + text.strip("/")


def recorded_path(case: Case, path: str, at_ns: int) -> str:
    """Return a path of the kernel's log as the recorder sees it.

    The kernel writes paths from the root of the machine. A recorder in a cgroup namespace (a
    node in a container, as kind's are) sees only the end of them.
    """
    plain = plain_path(path)
    known = {row.cgroup for row in case.state(CgroupNameRow, at_ns + _SEEN_AFTER_NS)}
    known |= {row.cgroup or "" for row in case.state(ContainerRow, at_ns + _SEEN_AFTER_NS)}
    seen = plain
    while seen:
        if seen in known:
            return seen
        seen = seen[1:].partition("/")[2]
        seen = f"/{seen}" if seen else ""
    return plain


def name_cgroup(case: Case, path: str, at_ns: int) -> CgroupNameRow | None:
    """Return the name row of a cgroup, or of the innermost named one above it."""
    names = {row.cgroup: row for row in case.state(CgroupNameRow, at_ns + _SEEN_AFTER_NS)}
    owner = read_path(path)
    above = path
    while above:
        named = names.get(above)
        if named is not None and read_root(named) is not None:
            # A container that is too young to be named is not of the unit that runs it.
            if owner is None or not owner.container_id or named.container_id or named.pod:
                return _with_container(case, named, at_ns)
            break
        above = above.rpartition("/")[0]
    if owner is None:
        return None
    row = CgroupNameRow(
        time_ns=at_ns, cgroup=path, unit=owner.unit, container_id=owner.container_id,
        pod_uid=owner.pod_uid, kind=owner.kind,
    )  # fmt: skip
    return _with_container(case, row, at_ns)


def _with_container(case: Case, row: CgroupNameRow, at_ns: int) -> CgroupNameRow:
    """Return the row with the names that the runtime reports of its container or pod."""
    if row.container or row.pod:
        return row
    if row.container_id is None:
        return _with_pod(case, row, at_ns)
    for each in case.state(ContainerRow, at_ns + _SEEN_AFTER_NS):
        if each.id == row.container_id and each.name:
            return row.replace(container=each.name, pod=each.pod, namespace=each.namespace)
    reach = Window(at_ns - LOOKBACK_NS, at_ns + _SEEN_AFTER_NS)
    for event in case.events_of(*_CONTAINER_KINDS, within=reach):
        told = event.get(ContainerDetails)
        if told.id == row.container_id and told.name:
            return row.replace(container=told.name, pod=told.pod, namespace=told.namespace)
    return _with_pod(case, row, at_ns)


def _with_pod(case: Case, row: CgroupNameRow, at_ns: int) -> CgroupNameRow:
    """Return the row with the name of its pod, as any other cgroup or container of it has it."""
    if row.pod_uid is None:
        return row
    for named in case.state(CgroupNameRow, at_ns + _SEEN_AFTER_NS):
        if named.pod_uid == row.pod_uid and named.pod:
            return row.replace(pod=named.pod, namespace=named.namespace)
    for each in case.state(ContainerRow, at_ns + _SEEN_AFTER_NS):
        owner = read_path(each.cgroup or "")
        if each.pod and owner is not None and owner.pod_uid == row.pod_uid:
            return row.replace(pod=each.pod, namespace=each.namespace)
    return row


def read_root(row: CgroupNameRow) -> Root | None:
    """Return whom a name row names; None for a session or a slice, which are nobody's."""
    owner = name_owner(row)
    return None if owner is None else Root(owner.kind, owner.name)


def owner_of_cgroup(case: Case, path: str, at_ns: int) -> Root:
    """Return the owner of a cgroup that did something; the cgroup itself if nobody's in particular.

    Unlike on a core, where a scope or a slice says nothing of the process, a limit may be
    theirs, and what is forked there is theirs.
    """
    plain = plain_path(path)
    row = name_cgroup(case, plain, at_ns)
    if row is None:
        return Root("cgroup", plain)
    root = read_root(row)
    if root is not None:
        return root
    if row.pod_uid:
        return Root("pod", row.pod_uid)
    if row.unit and row.kind != "session" and row.unit.endswith(".scope"):
        return Root("unit", row.unit)
    return Root("cgroup", plain)
