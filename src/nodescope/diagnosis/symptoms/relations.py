"""Which symptoms may be one thing: alike and of one subject, or one the cause of the other.

Nearness in time alone makes no incident: an OOM kill of one unit and an I/O error of a disk
in the same second are two. `CAUSES` declares what may follow from what; where both name a
device, it must be the same.
"""

from __future__ import annotations

from nodescope.diagnosis.finding import Symptom
from nodescope.diagnosis.symptoms.subjects import cgroup_of, device_of
from nodescope.judgement.device_names import is_same_device
from nodescope.records.event_kinds import EVENT_KINDS

_BUS = frozenset(["pcie_error", "hw_error"])
_DISK = frozenset(["nvme_timeout", "disk_io_error", "io_stalled", "raid_degraded"])
_FILES = frozenset(["fs_error", "fs_readonly"])
_REMOTE = frozenset(["nfs_stalled", "fuse_stalled"])
_GPU = frozenset(["gpu_ecc", "gpu_nvlink", "gpu_lost", "gpu_hung", "gpu_action", "nvswitch_error"])
_CORE = frozenset(
    kind.name for kind in EVENT_KINDS.values() if kind.way == "core" and kind.name != "job_failed"
)
_NIC = frozenset(kind.name for kind in EVENT_KINDS.values() if kind.rank and kind.of_nic)
_MEMORY = frozenset(["memory_pressure", "oom_kill"])
_KERNEL = frozenset(["kernel_oops", "hung_task", "mce", "edac_ue", "memory_poisoned"])
_TABLES = frozenset(kind.name for kind in EVENT_KINDS.values() if kind.rank and kind.way == "table")

# Kind by kind: what it may follow from.
CAUSES: dict[str, frozenset[str]] = {
    **dict.fromkeys(_DISK, _BUS | _DISK),
    **dict.fromkeys(_FILES, _BUS | _DISK | _FILES),
    "nfs_stalled": _NIC | {"rdma_link_down"},
    "fuse_stalled": _NIC | {"nfs_stalled", "hung_task"},
    **dict.fromkeys(_GPU, _BUS | _GPU),
    "rdma_link_down": _BUS,
    **dict.fromkeys(_NIC, _BUS | {"nic_health"}),
    "memory_poisoned": frozenset(["edac_ue", "mce", "hw_error"]),
    "edac_ue": frozenset(["mce", "hw_error"]),
    "mce": frozenset(["edac_ue", "hw_error"]),
    "hung_task": _DISK | _FILES | _REMOTE | _GPU | _CORE | {"kernel_oops", "memory_pressure",
                                                            "hung_task"},
    "kernel_panic": _KERNEL | _CORE | _BUS,
    "memory_pressure": _MEMORY,
    "eviction": _MEMORY | {"fs_full", "pid_exhausted"},
    "kubelet_unhealthy": _DISK | _FILES | _REMOTE | _CORE | _TABLES | {
        "hung_task", "memory_pressure", "kubelet_unhealthy",
    },
}  # fmt: skip
for _kind in _CORE - _NIC:
    CAUSES[_kind] = CAUSES.get(_kind, frozenset()) | {"kernel_oops", "mce", "hw_error"}
# The clock's watchdog gives up where its own timer came late.
CAUSES["clocksource_unstable"] = frozenset(["soft_lockup", "hard_lockup", "rcu_stall"])


def may_be_one(one: Symptom, other: Symptom) -> bool:
    """Decide whether two symptoms may belong to one incident, however close they are."""
    if "job_failed" in (one.kind, other.kind):
        return True
    if _way(one) == "core" and _way(other) == "core":
        return True  # cores tell these apart
    if _is_alike(one, other):
        return True
    causal = one.kind in CAUSES.get(other.kind, ()) or other.kind in CAUSES.get(one.kind, ())
    return causal and not _devices_differ(one, other)


def are_two_troubles(one: Symptom, other: Symptom) -> bool:
    """Decide whether a network device and another device each had trouble of their own.

    A task that hangs may follow from either; it does not make one of the two.
    """
    networks = (one.kind in _NIC, other.kind in _NIC)
    if networks not in ((True, False), (False, True)):
        return False
    rest = other if networks[0] else one
    return _way(rest) == "device" and not may_be_one(one, other)


def is_again(first: Symptom, other: Symptom) -> bool:
    """Decide whether a symptom of the same incident is the first one once more.

    Of a core there may be many reports; each says something of its own.
    """
    alike = first.kind == other.kind and _is_alike(first, other)
    return alike and _way(first) not in ("core", None)


def is_other_table(one: Symptom, other: Symptom) -> bool:
    """Decide whether two symptoms are of two full tables or file systems: neither is the other."""
    return _way(one) == _way(other) == "table" and one.subject != other.subject


def _way(symptom: Symptom) -> str | None:
    kind = EVENT_KINDS.get(symptom.kind)
    return "core" if kind is None else kind.way  # a moment is followed to a core


def _is_alike(one: Symptom, other: Symptom) -> bool:
    """Decide whether both are of one way, and of one cgroup, device or other subject."""
    if _way(one) != _way(other):
        return False
    mine, others = cgroup_of(one), cgroup_of(other)
    if mine is not None or others is not None:
        return mine == others
    mine, others = device_of(one), device_of(other)
    if mine is not None and others is not None:
        return is_same_device(mine, others)
    return (one.kind, one.subject) == (other.kind, other.subject)


def _devices_differ(one: Symptom, other: Symptom) -> bool:
    mine, others = device_of(one), device_of(other)
    if mine is None or others is None:
        return False
    # A server or an interface is no name of a disk: they are compared only among themselves.
    return _is_local(mine) == _is_local(others) and not is_same_device(mine, others)


def _is_local(device: str) -> bool:
    return "/" not in device.removeprefix("/dev/") and " " not in device
