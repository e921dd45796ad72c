"""Recordings of what a test tells: rows, events and lines of a kernel's log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Chain, Diagnosis
from nodescope.ingest.event_rows import event_rows
from nodescope.ingest.kernel_events import KernelEvents, KernelLine
from nodescope.quantities import SECOND_NS
from nodescope.recording.memory import recording_of
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.details import read_details
from nodescope.records.event import Event, details_of_kind
from nodescope.records.node_tables import CgroupRow
from nodescope.records.recorder_tables import HeartbeatRow
from nodescope.records.table import Row

ZERO_NS = 1_780_000_000 * SECOND_NS


def at(second: float) -> int:
    """A second of the recording, as a wall time."""
    return ZERO_NS + round(second * SECOND_NS)


def event(second: float, kind: str, subject: str, said: str = "", **details: Any) -> Event:
    """An event with the details that its kind declares."""
    told = read_details(details_of_kind(kind), details)
    return Event(at(second), kind, subject, said or f"{kind} of {subject}", None, told)


def lines(*told: tuple[float, str]) -> list[Event]:
    """The events that a recorder makes of lines of the kernel's log."""
    found: list[Event] = []
    kernel = KernelEvents()
    for number, (second, text) in enumerate(told):
        kernel.add(found, KernelLine(at(second), text, number))
    return found


def memory(cgroup: str, *readings: tuple[float, int], limit: int | None = None) -> list[Row]:
    """Rows of `cgroups`: second and bytes."""
    return [
        CgroupRow(time_ns=at(second), cgroup=cgroup, memory_bytes=used, memory_limit_bytes=limit)
        for second, used in readings
    ]


def record(events: Iterable[Event], rows: Iterable[Row] = (), seconds: int = 900) -> Recording:
    """A recording of these, and nothing else."""
    beats = [HeartbeatRow(time_ns=at(end), wall_ns=at(end)) for end in (0, seconds)]
    return recording_of([*beats, *event_rows(list(events)), *rows])


def solve_told(events: Iterable[Event], rows: Iterable[Row] = (), seconds: int = 900) -> Diagnosis:
    """The diagnosis of such a recording."""
    found = record(events, rows, seconds)
    return diagnose(found, Window(found.extent.from_ns, found.extent.to_ns))


def first(found: Diagnosis) -> Chain:
    """The likeliest chain of the first finding."""
    return found.findings[0].chains[0]


def said(chain: Chain) -> str:
    """All statements of a chain."""
    return " | ".join(link.statement for link in chain.links)
