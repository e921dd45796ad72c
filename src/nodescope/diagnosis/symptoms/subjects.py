"""What a symptom is about: its cgroup, its device, its task, by its details."""

from __future__ import annotations

from nodescope.diagnosis.finding import Symptom
from nodescope.records.event import Event
from nodescope.records.event_details import (
    HungTaskDetails,
    NicDetails,
    OomKillDetails,
    SoftLockupDetails,
)
from nodescope.records.trouble_details import (
    CgroupLimitDetails,
    FaultDetails,
    FullTableDetails,
    GpuDetails,
    HardwareDetails,
    StorageDetails,
)


def cgroup_of(symptom: Symptom) -> str | None:
    """Return the cgroup whose limit was reached; None if none is named, or the whole node's."""
    path = symptom.get(OomKillDetails).memcg or symptom.get(CgroupLimitDetails).cgroup
    if path is None:
        path = symptom.get(FullTableDetails).scope
    return path if path is not None and path.startswith("/") and path != "/" else None


def device_of(symptom: Symptom) -> str | None:
    """Return the device, server or mount that a symptom is about."""
    storage = symptom.get(StorageDetails)
    named = storage.device or storage.server or storage.mount
    return (
        named
        or symptom.get(HardwareDetails).device
        or symptom.get(GpuDetails).device
        or symptom.get(NicDetails).device
    )


def task_of(symptom: Symptom) -> tuple[str | None, int | None]:
    """Return name and id of the task that a symptom is about."""
    hung, locked = symptom.get(HungTaskDetails), symptom.get(SoftLockupDetails)
    fault, device = symptom.get(FaultDetails), symptom.get(GpuDetails)
    for told in (hung, locked, fault, device):
        if told.comm is not None or told.pid is not None:
            return told.comm, told.pid
    return symptom.get(StorageDetails).comm, None


def describe_kill(event: Event) -> str:
    """Return what the OOM killer did, in words: its own line is made for programs."""
    told = event.get(OomKillDetails)
    if told.comm is None:
        return event.message
    who = told.comm if told.pid is None else f"{told.comm} ({told.pid})"
    if told.memcg is not None:
        above = told.task_memcg is not None and told.task_memcg != told.memcg
        group = "a cgroup above its own" if above else "its cgroup"
        return f"the OOM killer killed {who}: {group} was at its memory limit"
    if told.constraint == "CONSTRAINT_NONE":
        return f"the OOM killer killed {who}: the node had no memory left"
    return f"the OOM killer killed {who}"
