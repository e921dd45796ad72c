"""Stacks of one task or core: call traces of the kernel's log, and the record of blocked tasks."""

from __future__ import annotations

from dataclasses import dataclass

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Symptom
from nodescope.diagnosis.symptoms.subjects import task_of
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.view import View, around
from nodescope.records.witness_tables import BlockedTaskRow, CallTraceRow

TRACE_NS = 5 * SECOND_NS  # a trace follows its message within that
BLOCKED_NS = 120 * SECOND_NS  # a hung task was blocked for minutes before it is reported
TRACED, WATCHED = 3.0, 3.5  # nats


@dataclass(frozen=True, slots=True)
class TaskStack:
    """The functions of the kernel that a task stood in, outermost first."""

    frames: tuple[str, ...]
    comm: str | None
    because: str
    strength: float
    show: View


def find_stack(case: Case, symptom: Symptom) -> TaskStack | None:
    """Return the stack that belongs to a report: of its task, or of its core."""
    comm, pid = task_of(symptom)
    # The recorder saw it blocked for a while, a trace is of one moment.
    return find_blocked(case, symptom.time_ns, pid, comm) or find_trace(
        case, symptom.time_ns, pid, comm, symptom.cpu, symptom.kind
    )


def find_trace(
    case: Case, at_ns: int, pid: int | None, comm: str | None, cpu: int | None, kind: str
) -> TaskStack | None:
    """Return the call trace near a moment of a task or of a core, in the kernel's log."""
    near = Window(at_ns - TRACE_NS, at_ns + TRACE_NS)
    best: tuple[int, CallTraceRow] | None = None
    for row in case.rows(CallTraceRow, near):
        fit = _fit(row, pid, comm, cpu, kind)
        if fit and (best is None or fit > best[0]):
            best = fit, row
    if best is None:
        return None
    row = best[1]
    return TaskStack(
        _frames(row.stack), row.comm, "its call trace in the kernel's log shows it", TRACED,
        View("events", around(row.time_ns, 30)),
    )  # fmt: skip


def _fit(row: CallTraceRow, pid: int | None, comm: str | None, cpu: int | None, kind: str) -> int:
    """Return how well a trace fits a report; 0 if it is of something else."""
    if pid is not None and row.pid is not None:
        return 4 if row.pid == pid else 0
    if comm is not None and row.comm is not None:
        return 3 if row.comm == comm else 0
    if cpu is not None and row.cpu is not None:
        return 2 if row.cpu == cpu else 0
    return int(row.event_kind == kind)


def find_blocked(case: Case, at_ns: int, pid: int | None, comm: str | None) -> TaskStack | None:
    """Return the stack of a task in the recorder's own look at blocked tasks."""
    near = Window(at_ns - BLOCKED_NS, at_ns + SECOND_NS)
    mine = [
        row
        for row in case.rows(BlockedTaskRow, near)
        if (pid in (row.tid, row.pid) if pid is not None else row.comm == comm)
        and (row.stack or row.waits_in)
    ]
    if not mine:
        return None
    row = mine[-1]
    frames = _frames(row.stack) if row.stack else (row.waits_in or "",)
    return TaskStack(
        frames, row.comm, "the recorder saw it blocked there", WATCHED,
        View("table", around(row.time_ns, 60), table="blocked_tasks"),
    )  # fmt: skip


def _frames(stack: str) -> tuple[str, ...]:
    return tuple(each for each in stack.split(";") if each)
