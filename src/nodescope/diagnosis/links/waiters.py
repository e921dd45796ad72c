"""Who waits for a device, and what the device itself waits for, by the record of blocked tasks.

A device may be a file on another file system (loop), or be served by a thread of the kernel:
where that thread waits for something else, the device is not at fault.
"""

from __future__ import annotations

from collections import Counter

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.whose_cgroup import owner_of_cgroup
from nodescope.diagnosis.links.whose_process import find_place
from nodescope.diagnosis.rules.wait import Wait, classify_wait
from nodescope.diagnosis.story import Story
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.event_details import HungTaskDetails
from nodescope.records.view import View, around
from nodescope.records.witness_tables import BlockedTaskRow

BEFORE_NS, AFTER_NS = 120 * SECOND_NS, 30 * SECOND_NS
# Waits for a device: whoever serves it and is in one of these says nothing new.
_FOR_A_DEVICE = ("block_io", "journal_commit", "dirty_pages")


def add_waiting(case: Case, story: Story, symptom: Symptom, device: str) -> Wait | None:
    """Add who waits for a device; return what its own worker waits for, if anything."""
    near = Window(symptom.time_ns - BEFORE_NS, symptom.time_ns + AFTER_NS)
    rows = {row.tid: row for row in case.rows(BlockedTaskRow, near)}
    if not _add_waiters(case, story, symptom, list(rows.values())):
        _add_hung(case, story, symptom, near)
    for row in rows.values():
        found = classify_wait(_frames(row))
        if device in row.comm and found is not None and found[0].name not in _FOR_A_DEVICE:
            wait, function = found
            story.links.append(
                Link(
                    "wait", wait.name,
                    f"{row.comm}, which serves {device}, waits for {wait.title} itself: it sleeps "
                    f"in {function}, as the recorder saw", 3.5,
                    View("table", around(row.time_ns, 60), table="blocked_tasks"),
                    "another stack of that task then", short=f"waits for {wait.title}",
                )
            )  # fmt: skip
            return wait
    return None


def _frames(row: BlockedTaskRow) -> tuple[str, ...]:
    return tuple((row.stack or row.waits_in or "").split(";"))


def _add_waiters(case: Case, story: Story, symptom: Symptom, rows: list[BlockedTaskRow]) -> bool:
    """Add whose tasks were blocked meanwhile, if any; tasks of the kernel are nobody's."""
    owners: Counter[Root] = Counter()
    for row in rows:
        if row.cgroup and row.cgroup != "/":
            owners[owner_of_cgroup(case, row.cgroup, row.time_ns)] += 1
    if not owners:
        return False
    named = ", ".join(f"{root.title} ({count})" for root, count in owners.most_common(3))
    story.add_harmed(
        Link(
            "blocked", owners.most_common(1)[0][0].name,
            f"tasks that were blocked meanwhile: {named}", 4.5,
            View("table", around(symptom.time_ns, 120), table="blocked_tasks"),
            "tasks that wait for something else",
        )
    )  # fmt: skip
    return True


def _add_hung(case: Case, story: Story, symptom: Symptom, near: Window) -> None:
    """Add whose tasks the kernel reports as blocked meanwhile, where that is known."""
    named: dict[Root, str] = {}
    for event in case.events_of("hung_task", within=near):
        told = event.get(HungTaskDetails)
        place = find_place(case, event.time_ns, told.comm, told.pid)
        if place is not None and place.cgroup not in ("", "/"):
            root = owner_of_cgroup(case, place.cgroup, event.time_ns)
            named.setdefault(root, f"{told.comm}:{told.pid} of {root.title} ({place.because})")
    if not named:
        return
    story.add_harmed(
        Link(
            "blocked", next(iter(named)).name,
            f"the kernel reports tasks that were blocked meanwhile: {', '.join(named.values())}",
            4.0, View("events", around(symptom.time_ns, 120)), "tasks that wait for something else",
        )
    )  # fmt: skip


def steps_of_wait(wait: Wait) -> tuple[Action, ...]:
    """Return what ends a wait."""
    if wait.name == "frozen_file_system":
        return (Action("thaw", Target("mount"), note="if nobody needs it frozen"),)
    if wait.name == "frozen_cgroup":
        return (Action("thaw", Target("cgroup"), note="if nobody needs it frozen"),)
    if wait.name == "fuse_daemon":
        return (Action("abort_connection", Target("mount"), note="which ends all its waits"),)
    return ()
