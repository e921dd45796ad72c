"""From a lockup or a stall to its task and mechanism, by the kernel's own message and trace.

A bare log has no samples and no core time: the message names the task that was on the core,
and the call trace below it is classified by the same mechanisms as samples.
"""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, Symptom
from nodescope.diagnosis.links.traces import find_trace
from nodescope.diagnosis.rules.mechanism import classify
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.standstill import is_idle
from nodescope.diagnosis.symptoms.subjects import task_of
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.event_details import SoftLockupDetails, WorkPoolDetails
from nodescope.records.view import View, around

BY_MESSAGE = 3.0  # nats: the watchdog names the task that it interrupted
BY_TRACE = 2.0  # nats: one look, where samples are hundreds
SHORTEST_S = 5  # that a watchdog waits, where its message does not say how long
_SHOWN = 7  # functions of a trace, the innermost first
_TRACED = ("soft_lockup", "hard_lockup", "rcu_stall", "workqueue_lockup")


def add_traced_task(case: Case, story: Story, report: Symptom) -> bool:
    """Add the task that a message or its trace names; false if there is none to be believed."""
    if report.kind not in _TRACED:
        return False
    comm, pid = task_of(report)
    trace = find_trace(case, report.time_ns, pid, comm, report.cpu, report.kind)
    span = Window(report.time_ns - SHORTEST_S * SECOND_NS, report.time_ns)
    if trace is None and (comm is None or case.recording.coverage("cores", span)):
        return False  # core time was recorded, and shows no such core
    named = comm or (trace.comm if trace is not None else None)
    if named is None:
        return False
    if is_idle(named) and (trace is None or classify(trace.frames) is None):
        story.lacks(
            "a task on the core",
            f"core {report.cpu} was idle when the kernel reported it: interrupts kept it, or the "
            "machine itself was paused", show=View("events", around(report.time_ns, 30)),
        )  # fmt: skip
        return False
    stuck_s = report.get(SoftLockupDetails).stuck_s or report.get(WorkPoolDetails).stuck_s
    from_ns = report.time_ns - (stuck_s or SHORTEST_S) * SECOND_NS
    cpu = -1 if report.cpu is None else report.cpu
    story.held = PeggedCore(cpu, from_ns, report.time_ns, 1.0)
    story.comm, story.pid = named, pid
    on = "" if report.cpu is None else f" on core {report.cpu}"
    story.links.append(
        Link("task", named, f"{named} was running{on} when the kernel reported it", BY_MESSAGE,
             View("events", around(report.time_ns, 30)), "another task on that core")
    )  # fmt: skip
    if trace is not None:
        _add_mechanism(story, named, trace.frames, trace.show)
    return True


def _add_mechanism(story: Story, comm: str, frames: tuple[str, ...], show: View) -> None:
    mechanism = classify(frames)
    if mechanism is None:
        story.lacks(
            "a known mechanism",
            f"the call trace is of no family we know: {' ← '.join(frames[:-_SHOWN:-1])}",
            show=show,
        )  # fmt: skip
        return
    story.mechanism = mechanism
    story.links.append(
        Link("mechanism", mechanism.name,
             f"{comm} was {mechanism.title}: the call trace in the kernel's log ends in "
             f"{frames[-1]}", BY_TRACE, show, "a trace of another moment that shows something else",
             frame=frames[-1])
    )  # fmt: skip
