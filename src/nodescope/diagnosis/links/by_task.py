"""From a blocked or faulting task to what it waits for, who holds that, and whose it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.ending import Ending
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.by_device import earlier_trouble, follow_device
from nodescope.diagnosis.links.traces import TaskStack, find_stack, find_trace
from nodescope.diagnosis.links.waiters import steps_of_wait
from nodescope.diagnosis.links.whose_cgroup import owner_of_cgroup
from nodescope.diagnosis.links.whose_process import find_place
from nodescope.diagnosis.rules.wait import Wait, classify_wait
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.subjects import task_of
from nodescope.judgement.device_names import disk_of
from nodescope.quantities import MINUTE_NS
from nodescope.records.action import Action, Target, TargetName
from nodescope.records.event_details import HungTaskDetails
from nodescope.records.trouble_details import FaultDetails
from nodescope.records.view import View, around

DEVICE_BEFORE_NS = 10 * MINUTE_NS
BY_TIME = 1.5  # nats: trouble of a device before, of which the stack does not name the device
BY_NAME = 2.0  # nats: the thread of a device's journal waits, and nothing was reported of it
_JOURNAL = re.compile(r"(?:jbd2|xfsaild)/(?P<device>[\w-]+?)(?:-\d+)?")
_OF_A_CORE = ("rcu_grace_period", "kernel_work", "mutex", "semaphore", "network_lock")
_OWNERS: dict[str, TargetName] = {
    "unit": "unit", "container": "container", "pod": "pod", "cgroup": "cgroup",
    "process": "process",
}  # fmt: skip


def choose_task(case: Case, symptoms: Sequence[Symptom]) -> Symptom:
    """Return the blocked task that says most: one that waits for a device, not for a lock."""
    waits = [(_depth(case, each), number) for number, each in enumerate(symptoms[:20])]
    return symptoms[min(waits)[1]]


def _depth(case: Case, symptom: Symptom) -> int:
    stack = find_stack(case, symptom)
    found = classify_wait(stack.frames) if stack is not None else None
    if found is None:
        return 3 if symptom.get(HungTaskDetails).holder is None else 2
    return 1 if found[0].leads == "lock" else 0


def waits_for_no_core(case: Case, symptom: Symptom) -> bool:
    """Decide whether a task's stack says that it waits for something that no core can give."""
    stack = find_stack(case, symptom)
    found = classify_wait(stack.frames) if stack is not None else None
    return found is not None and found[0].name not in _OF_A_CORE


def follow_task(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    """Add the links from a blocked task on; None if nothing is known but its name."""
    comm, pid = task_of(symptom)
    stack = find_stack(case, symptom)
    wait = _add_wait(story, stack, comm or symptom.subject)
    holder = _add_holder(case, story, symptom)
    if wait is None and holder is None:
        return None
    if holder is None and wait is not None and wait.leads == "device":
        ending = _to_device(case, story, symptom, wait)
        if ending is not None:
            return ending
    name, number = (comm, pid) if holder is None else holder
    root = add_owner(case, story, symptom.time_ns, name or symptom.subject, number)
    return Ending(
        root, None if wait is None else wait.name, "" if wait is None else wait.meaning,
        _steps(root, wait, held=holder is not None),
    )  # fmt: skip


def _add_wait(story: Story, stack: TaskStack | None, who: str) -> Wait | None:
    if stack is None:
        return None
    found = classify_wait(stack.frames)
    if found is None:
        story.lacks(
            "a known wait", f"{who} sleeps in {stack.frames[-1]}, which no rule knows",
            show=stack.show,
        )  # fmt: skip
        return None
    wait, function = found
    story.links.append(
        Link(
            "wait", wait.name,
            f"{who} waits for {wait.title}: it sleeps in {function}, and {stack.because}",
            stack.strength, stack.show, "another stack of that task then",
            short=f"waits for {wait.title}",
        )
    )  # fmt: skip
    return wait


def _add_holder(case: Case, story: Story, symptom: Symptom) -> tuple[str | None, int | None] | None:
    """Add who holds the lock, as the kernel says, and what that task does meanwhile."""
    told = symptom.get(HungTaskDetails)
    if told.holder is None:
        return None
    doing = find_trace(case, symptom.time_ns, told.holder_pid, told.holder, None, symptom.kind)
    found = classify_wait(doing.frames) if doing is not None else None
    meanwhile = f", which itself waits for {found[0].title} ({found[1]})" if found else ""
    story.links.append(
        Link(
            "holder", told.holder,
            f"the kernel says that {told.holder}:{told.holder_pid} likely holds the "
            f"{told.waits_for or 'lock'}{meanwhile}",
            3.0, View("events", around(symptom.time_ns, 30)), "another holder of the lock",
        )
    )  # fmt: skip
    return told.holder, told.holder_pid


def _to_device(case: Case, story: Story, symptom: Symptom, wait: Wait) -> Ending | None:
    """Follow the trouble of a device in the minutes before, if there was any."""
    of_gpu = wait.name == "gpu_driver"
    trouble = earlier_trouble(case, symptom, DEVICE_BEFORE_NS, of_gpu=of_gpu)
    if trouble is None:
        return _to_journal(story, symptom, wait)
    story.links.append(
        Link(
            "earlier", trouble.subject,
            f"before it: {trouble.statement}; the stack names no device, so only the time and "
            f"what it waits for tie them", BY_TIME,
            View("events", around(trouble.time_ns, 60)), "such waits without that trouble",
        )
    )  # fmt: skip
    ending = follow_device(case, story, trouble)
    return Ending(ending.root, wait.name, wait.meaning, ending.steps, ending.reporter)


def _to_journal(story: Story, symptom: Symptom, wait: Wait) -> Ending | None:
    """End at the device whose journal a thread of the kernel writes: its name has the device."""
    comm, _ = task_of(symptom)
    named = _JOURNAL.fullmatch(comm or "")
    if named is None:
        return None
    device = disk_of(named["device"])
    story.links.append(
        Link(
            "device", device,
            f"{comm} writes the journal of the file system on {named['device']}; why it does "
            "not answer is not shown", BY_NAME,
            View("events", around(symptom.time_ns, 600)), "a device that completes requests then",
        )
    )  # fmt: skip
    note = "does it answer, and does its controller or volume?"
    steps = (Action("look", Target("device", device), note=note),)
    return Ending(Root("device", device), wait.name, wait.meaning, steps)


def add_owner(case: Case, story: Story, at_ns: int, comm: str, pid: int | None) -> Root:
    """Add whose a task is; without a witness the task itself is the root."""
    place = find_place(case, at_ns, comm, pid)
    if place is None:
        story.lacks(
            f"the cgroup of {comm}", "whose process it is was not recorded",
            "record the node itself: a log alone does not say", View("doctor"),
        )  # fmt: skip
        return Root("process", comm)
    root = owner_of_cgroup(case, place.cgroup, at_ns)
    if root.name == "/":
        return Root("process", comm)  # of the kernel, or of nobody in particular
    story.links.append(
        Link(
            "owner", root.name, f"{comm} is of {root.kind} {root.name}: {place.because}",
            place.strength, View("events", around(at_ns, 60)), f"{comm} running elsewhere, too",
        )
    )  # fmt: skip
    return root


def _steps(root: Root, wait: Wait | None, *, held: bool) -> tuple[Action, ...]:
    steps = []
    if root.kind in _OWNERS:
        note = "it holds what others wait for" if held else "what does it wait for, and since when?"
        steps.append(Action("look", Target(_OWNERS[root.kind], root.name), note=note))
    if wait is not None:
        steps += steps_of_wait(wait)
    return tuple(steps)


# -- a fault of the kernel ---------------------------------------------------------


def follow_fault(case: Case, story: Story, symptom: Symptom) -> Ending | None:
    """Add where the kernel met a fault: the module, and the task that was running."""
    told = symptom.get(FaultDetails)
    if told.module:
        where = f" in {told.function}" if told.function else ""
        story.links.append(
            Link(
                "module", told.module, f"the fault is{where} of module {told.module}", 3.0,
                View("events", around(symptom.time_ns, 30)),
                "the same fault without that module",
            )
        )  # fmt: skip
        device = Target("module", told.module)
        steps = (
            Action("look", device, note="its version, and reports of this fault"),
            Action("reboot_node", Target("node"), note="the kernel may be damaged after a fault"),
        )
        return Ending(Root("module", told.module), "kernel_fault", _FAULT, steps)
    if told.comm is None:
        story.lacks("the module at fault", "the message names neither a module nor a task")
        return None
    place = find_place(case, symptom.time_ns, told.comm, told.pid)
    root = None if place is None else owner_of_cgroup(case, place.cgroup, symptom.time_ns)
    whose = f" of {root.title}" if root is not None else ""
    story.lacks(
        "the module at fault",
        f"the message names no module. {told.comm}{whose} was running, and need not be at fault: "
        "the fault is of the kernel itself, or of memory that something else damaged",
    )
    return None


_FAULT = "The kernel met a fault in its own code, and ended what ran there."
