"""From trouble of a device to what came before it, on its disk or its place on the bus."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.seen_before import describe_look, look_before
from nodescope.diagnosis.links.waiters import add_waiting, steps_of_wait
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.subjects import device_of, task_of
from nodescope.judgement.device_names import disk_of, is_same_device
from nodescope.quantities import MINUTE_NS, SECOND_NS, format_duration
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.event import Event
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.trouble_details import (
    FaultDetails,
    GpuDetails,
    HardwareDetails,
    StorageDetails,
)
from nodescope.records.view import Span, View, around

BEFORE_NS = 10 * MINUTE_NS
_STORAGE = (
    "nvme_timeout", "disk_io_error", "io_stalled", "raid_degraded", "fs_error", "fs_readonly",
    "nfs_stalled", "fuse_stalled",
)  # fmt: skip
# What may come before: the device itself, the bus below it, heat.
_BEFORE = (*_STORAGE, "pcie_error", "pcie_corrected", "hw_error", "edac_ce", "edac_ue", "mce",
           "mce_corrected", "gpu_ecc", "gpu_memory_retired", "gpu_nvlink", "gpu_hung",
           "nvswitch_error")  # fmt: skip
_GPUS = ("gpu_hung", "gpu_lost", "gpu_ecc", "gpu_nvlink", "gpu_action", "nvswitch_error")
_OF_MEMORY = ("memory_poisoned",)
_BEFORE_POISON = ("edac_ce", "edac_ue", "mce", "mce_corrected", "hw_error")
_FILE_SYSTEM = ("fs_error", "fs_readonly")
_WAITED_FOR = ("io_stalled", "nvme_timeout", "nfs_stalled", "fuse_stalled", "disk_io_error")
_MAY_PASS = ("disk_io_error", "nvme_timeout")  # one of these alone is no reason to replace it
OFTEN = 3  # times in the recording's reach: the device fails
ONCE = 2.0  # nats, for a device that reported fewer
_JOB_DIES = ("gpu_ecc", "gpu_lost", "gpu_hung", "gpu_nvlink", "nvswitch_error")


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What an end at a device means, and what to do."""

    mechanism: str
    meaning: str
    replace: bool = False
    at_fault: bool = False  # the device itself is, whatever caused that; else it only reported it


_RULES = {
    "disk_io_error": _Meaning("failed_requests", "The device does not do what it is asked.", True),
    "nvme_timeout": _Meaning("no_answer", "The device did not answer in time.", True),
    "io_stalled": _Meaning("no_answer", "Requests wait at the device, and none completes."),
    "nfs_stalled": _Meaning("no_answer", "The server, or the network to it, does not answer."),
    "fuse_stalled": _Meaning("no_answer", "The program that serves the mount does not answer."),
    "fs_error": _Meaning("damaged_file_system", "What the file system reads there cannot be true."),
    "fs_readonly": _Meaning("damaged_file_system", "The file system stopped taking writes."),
    "raid_degraded": _Meaning("lost_disk", "The array goes on without one of its disks.", True),
    "gpu_lost": _Meaning("lost_device", "The device does not answer on its bus.", True),
    "gpu_hung": _Meaning("hung_device", "The device or its firmware hangs."),
    "gpu_ecc": _Meaning("memory_error", "Memory of the device had an error.", True, True),
    "gpu_nvlink": _Meaning("link_error", "A link between devices had an error."),
    "nvswitch_error": _Meaning("link_error", "A switch between devices had an error."),
    "gpu_action": _Meaning("reset_wanted", "The driver itself says what has to be done."),
    "rdma_link_down": _Meaning("lost_link", "A port lost its link: cable, switch or port."),
    "nic_health": _Meaning("hung_device", "The device or its firmware does not work as it should."),
    "pcie_error": _Meaning("bus_error", "The bus had an error that was not corrected.", True),
    "memory_poisoned": _Meaning("memory_error", "Memory of the node is damaged.", True, True),
}

_FULL = _Meaning(
    "backing_full", "What lies below the device has no room left: a thin pool, or a file system."
)
_HARDWARE = _Meaning("hardware_error", "", True)


def follow_device(case: Case, story: Story, symptom: Symptom) -> Ending:
    """Add what came before on the same device, and end at the device."""
    earliest = _add_earlier(case, story, symptom)
    kind = symptom.kind if earliest is None else earliest.kind
    device = device_of(symptom if earliest is None else _as_symptom(earliest))
    # A report about memory names the process that used it, or nothing.
    name = device or ("memory" if symptom.kind in _OF_MEMORY else symptom.subject)
    of_disk = EVENT_KINDS[kind].details is StorageDetails and "/" not in name
    root = Root(_root_kind(kind, symptom), disk_of(name) if of_disk else name)
    _add_user(story, symptom)
    if symptom.kind in _OF_MEMORY and symptom.subject.startswith("0x"):
        _add_page(case, story, symptom)
    wait = add_waiting(case, story, symptom, name) if symptom.kind in _WAITED_FOR else None
    if wait is not None:
        return Ending(root, wait.name, wait.meaning, steps_of_wait(wait))
    if _lacks_room(case, symptom):
        return Ending(root, _FULL.mechanism, _FULL.meaning, _steps(root, symptom, _FULL))
    rule = _RULES.get(kind) or _RULES.get(symptom.kind)
    if rule is None:
        return Ending(root, reporter=True)
    if kind in _MAY_PASS and earliest is None and _count_alike(case, symptom) < OFTEN:
        _add_reporter(story, symptom, root)
        rule = replace(rule, replace=False)
    return Ending(root, rule.mechanism, rule.meaning, _steps(root, symptom, rule),
                  reporter=not rule.at_fault)  # fmt: skip


def _count_alike(case: Case, symptom: Symptom) -> int:
    """Return how often the same was reported of the device, as far as the recording reaches."""
    device = device_of(symptom) or symptom.subject
    alike = case.events_of(symptom.kind, within=case.reach)
    return sum(_is_of(event, device) for event in alike)


def _add_reporter(story: Story, symptom: Symptom, root: Root) -> None:
    """Say that a device is only known as the one that reported a few errors."""
    story.links.append(
        Link(
            "device", root.name,
            f"{root.name} is the device that reported it, and little else was reported of it: "
            "whether it, its cable or its controller is at fault is not shown", ONCE,
            View("events", around(symptom.time_ns, 600)), "such errors of other devices, too",
        )
    )  # fmt: skip


def end_at_hardware(symptom: Symptom) -> Ending | None:
    """End at the part of the hardware that a report names; None if it names none."""
    device = symptom.get(HardwareDetails).device
    if device is None:
        return None
    root = Root("device", device)
    # A controller of memory names the module that failed; others name who met the error.
    return Ending(root, "hardware_error", "The hardware itself reports the error.",
                  _steps(root, symptom, _HARDWARE), symptom.kind != "edac_ue")  # fmt: skip


def _root_kind(kind: str, symptom: Symptom) -> str:
    if kind == "nfs_stalled" and symptom.get(StorageDetails).server:
        return "server"
    return "mount" if kind in ("fuse_stalled", "nfs_stalled") else "device"


def earlier_trouble(
    case: Case, symptom: Symptom, before_ns: int, *, of_gpu: bool = False
) -> Symptom | None:
    """Return the first trouble of storage or of a GPU before a report; of one device alone."""
    before = Window(symptom.time_ns - before_ns, symptom.time_ns + SECOND_NS)
    kinds = _GPUS if of_gpu else _STORAGE
    found = [_as_symptom(each) for each in case.events_of(*kinds, within=before)]
    devices = {disk_of(device_of(each) or each.subject) for each in found}
    return found[0] if len(devices) == 1 else None


def _as_symptom(event: Event) -> Symptom:
    return Symptom(
        event.kind, event.time_ns, event.subject, event.message, event.cpu, None, event.details
    )


def _add_earlier(case: Case, story: Story, symptom: Symptom) -> Event | None:
    """Add the first trouble of the same device in the minutes before a report."""
    device = device_of(symptom)
    if device is None and symptom.kind not in _OF_MEMORY:
        return None
    before = Window(symptom.time_ns - BEFORE_NS, symptom.time_ns + 1)
    mine = [
        event
        for event in case.events_of(*_BEFORE, within=before)
        if _may_precede(event.kind, symptom.kind)
        and (event.kind in _BEFORE_POISON if device is None else _is_of(event, device))
    ]
    if not mine:
        if device is not None and symptom.kind in _FILE_SYSTEM and case.observed("kernel_log"):
            seen = look_before(case, "kernel_log", symptom.time_ns, BEFORE_NS)
            story.lacks(
                "an error of the device",
                f"none of {disk_of(device)} was reported {describe_look(seen)}: the file system "
                "itself may be damaged",
                "check the file system when it is not mounted", absent=seen,
            )  # fmt: skip
        return None
    first = next((each for each in mine if device or device_of(_as_symptom(each))), mine[0])
    alike = sum(event.kind == first.kind for event in mine)
    often = f" ({alike} such events)" if alike > 1 else ""
    place = "of the node's memory" if device is None else "on the same device"
    ahead = format_duration(max(0, symptom.time_ns - first.time_ns))
    story.links.append(
        Link(
            "earlier", first.subject, f"{ahead} before, {place}: {first.message}{often}",
            4.0, View("events", Span(first.time_ns - SECOND_NS, symptom.time_ns + SECOND_NS)),
            "the same trouble without that error",
        )
    )  # fmt: skip
    return first


def _lacks_room(case: Case, symptom: Symptom) -> bool:
    """Decide whether the device refused writes because what lies below it is full."""
    device = device_of(symptom)
    before = Window(symptom.time_ns - BEFORE_NS, symptom.time_ns + 1)
    return device is not None and any(
        "space" in (event.get(StorageDetails).error or "") and _is_of(event, device)
        for event in case.events_of("disk_io_error", within=before)
    )


def _may_precede(kind: str, later: str) -> bool:
    """Decide whether trouble of one kind may lead to the other: no disk fails for its files."""
    return kind != later and (kind not in _FILE_SYSTEM or later in _FILE_SYSTEM)


def _is_of(event: Event, device: str) -> bool:
    named = device_of(_as_symptom(event)) or event.subject
    return is_same_device(named, device)


def _add_user(story: Story, symptom: Symptom) -> None:
    """Say which process used the device, where the report names one."""
    comm, pid = task_of(symptom)
    if comm is None or symptom.kind not in _JOB_DIES:
        return
    # It suffers with the report, and does not stand between the device and the report.
    story.add_harmed(
        Link(
            "task", comm, f"{comm} ({pid}) was using it, says the driver", 3.0,
            View("events", around(symptom.time_ns, 30)), "another user of the device",
        )
    )  # fmt: skip


def _add_page(case: Case, story: Story, symptom: Symptom) -> None:
    """Say which page of memory is damaged, and who used it: a victim, and not at fault."""
    near = Window(symptom.time_ns - MINUTE_NS, symptom.time_ns + MINUTE_NS)
    victims = {
        f"{told.comm} ({told.pid})": None
        for event in case.events_of(symptom.kind, within=near)
        if event.subject == symptom.subject and (told := event.get(FaultDetails)).comm
    }
    used = f"; {', '.join(victims)} used it and was the victim" if victims else ""
    story.links.append(
        Link(
            "memory", symptom.subject, f"memory is damaged at page frame {symptom.subject}{used}",
            4.0, View("events", around(symptom.time_ns, 60)), "a test that finds no damage",
            short=f"page frame {symptom.subject}",
        )
    )  # fmt: skip


def _steps(root: Root, symptom: Symptom, rule: _Meaning) -> tuple[Action, ...]:
    show = View("events", around(symptom.time_ns, 600))
    if root.kind != "device":
        mount = Target("mount", root.name)
        look = Action("look", mount, note="does whoever serves it answer?", view=show)
        abort = Action("abort_connection", mount, note="if its program is gone")
        return (look, abort) if symptom.kind == "fuse_stalled" else (look,)
    target = Target("device", root.name)
    steps = [Action("look", target, note="what else was reported of it?", view=show)]
    asked = symptom.get(GpuDetails).action
    if asked:
        steps.append(Action("reset_device", target, note=f"the driver asks for: {asked}"))
    elif symptom.get(GpuDetails).xid is not None:
        steps.append(Action("reset_device", target, note="when no job uses it"))
    if rule is _FULL:
        steps.append(Action("free_space", Target("mount"), note="which the device lies on"))
    if symptom.kind in _JOB_DIES:
        steps.append(Action("restart_job", Target("job"), note="from its last checkpoint"))
    if rule.replace or symptom.get(HardwareDetails).severity is not None:
        steps += [
            Action("drain_node", Target("node"), note="before anything else fails on it"),
            Action("replace_hardware", target, note="if it happens again"),
        ]
    return tuple(steps)
