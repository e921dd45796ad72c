"""`top` and `events` as tables."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence

from nodescope.analysis.top import TopEntry
from nodescope.pictures.colour import NIGHT, one
from nodescope.pictures.terminal import Terminal, bar
from nodescope.pictures.text import columns_of, fit_end, pad, percent, visible
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.records.event import Event
from nodescope.records.witness_tables import CallTraceRow
from nodescope.wall_time import format_moment

_DAY, _TIME = "2026-05-01T", "12:00:05.000Z"
_LEAST_ROOM = 36  # columns: less than this is no room for a message
_TRACE_NS = 2 * SECOND_NS  # after its event
_FRAMES = 5  # innermost ones of a call trace
_BELOW = 4  # columns that a message below its event is indented


def render_top(
    entries: Sequence[TopEntry],
    by: str,
    terminal: Terminal,
    left: int = 0,
    sample_s: float | None = None,
    comms: Mapping[str, str] | None = None,
) -> str:
    """Most samples first, with the CPU time they stand for; the bar is the share.

    `sample_s` is the CPU time of one sample, `comms` are names of processes.
    """
    functions = by == "function"
    named = comms or {}
    names = [visible(f"{entry.name} {named.get(entry.name, '')}".rstrip()) for entry in entries]
    cpu = "  CPU time" if sample_s is not None else ""
    head = f"    total     self{cpu}   share" if functions else f"  samples{cpu}   share"
    fixed = len(head) + 2
    title = "function" if functions else by
    widest = max(columns_of(name) for name in [title, *names])
    width = min(widest, max(terminal.width - fixed - 14, 12))
    room = min(max(terminal.width - fixed - width - 2, 8), 40)
    last = "module" if functions else ""
    lines = [terminal.faint(f"{head}  {pad(title, width)}  {last}".rstrip())]
    most = max(entry.share for entry in entries) or 1.0
    for entry, name in zip(entries, names, strict=True):
        own = f"{entry.own:>9,}" if functions else ""
        time_ns = None if sample_s is None else round(entry.samples * sample_s * SECOND_NS)
        spent = "" if time_ns is None else f"{format_duration(time_ns):>10}"
        numbers = f"{entry.samples:>9,}{own}{spent}{percent(entry.share):>8}"
        if functions:
            end = terminal.faint(fit_end(visible(entry.module or ""), room))
        else:
            drawn = bar(entry.share / most, room, unicode=terminal.unicode).rstrip()
            end = terminal.paint(drawn, one(0.35 + 0.65 * entry.share / most, NIGHT))
        lines.append(f"{numbers}  {pad(name, width)}  {end}".rstrip())
    if left:
        lines.append(terminal.faint(f"… {left:,} more: --limit 0 shows all"))
    return "\n".join(lines)


def render_events(
    events: Sequence[Event],
    terminal: Terminal,
    left: int = 0,
    *,
    details: bool = False,
    width: int = 0,
    traces: Sequence[CallTraceRow] = (),
) -> str:
    """Return a line for each event, oldest first; `details` adds all that is known of it.

    A call trace of the kernel's log stands below its event; whole with `details`.

    In the `width` of a terminal times are short, below their day, and messages are wrapped;
    0 is for other programs: one whole line each.
    """
    if not events:
        return "no events"
    kinds = [visible(event.kind) for event in events]
    subjects = [visible(event.subject) for event in events]
    kind = min(max(map(columns_of, ["kind", *kinds])), 24)
    subject = min(max(map(columns_of, ["subject", *subjects])), 32)
    cores = any(event.cpu is not None for event in events)
    lines = [f"… {left:,} earlier: --limit 0 shows all"] if left else []
    core = "core  " if cores else ""
    time = len(_DAY) + len(_TIME) if not width else len(_TIME)
    head = f"{'time':<{time}}  {pad('kind', kind)}  {pad('subject', subject)}  {core}"
    lines = [terminal.faint(line) for line in [*lines, f"{head}message"]]
    day = ""
    for event, a_kind, a_subject in zip(events, kinds, subjects, strict=True):
        moment = format_moment(event.time_ns)
        if width and moment[: len(_DAY)] != day:
            day = moment[: len(_DAY)]
            lines.append(terminal.faint(day.rstrip("T")))
        place = f"{'' if event.cpu is None else event.cpu:>4}  " if cores else ""
        about = f"{moment[-time:]}  {pad(a_kind, kind)}  {pad(a_subject, subject)}  {place}"
        lines += _with_message(about, visible(event.message, 4096), width)
        if details and event.details:
            pairs = (f"{name}={_plain(value)}" for name, value in event.details.to_json().items())
            known = visible("  ".join(pairs), 4096)
            lines += map(terminal.faint, _with_message(" " * (time + 2), known, width))
        for trace in traces:
            if trace.event_kind == event.kind and 0 <= trace.time_ns - event.time_ns <= _TRACE_NS:
                shown = _describe_trace(trace, None if details else _FRAMES)
                lines += map(terminal.faint, _with_message(" " * (time + 2), shown, width))
    return "\n".join(lines)


def _describe_trace(trace: CallTraceRow, most: int | None) -> str:
    """Return a call trace in one line, innermost function first."""
    frames = [visible(name) for name in reversed(trace.stack.split(";"))]
    shown = " < ".join(frames[:most])
    rest = f" < … {len(frames) - most} more" if most is not None and len(frames) > most else ""
    whose = "" if trace.comm is None else f" of {visible(trace.comm)}:{trace.pid}"
    return f"call trace{whose}: {shown}{rest}"


def _with_message(about: str, message: str, width: int) -> list[str]:
    """Return a message behind what it is about, wrapped; below it where little room is left."""
    room = width - columns_of(about)
    if not width or columns_of(message) <= room:
        return [f"{about}{message}".rstrip()]
    if room < _LEAST_ROOM:
        wrapped = textwrap.wrap(message, max(width - _BELOW, 20))
        return [about.rstrip(), *(" " * _BELOW + line for line in wrapped)]
    first, *others = textwrap.wrap(message, room)
    return [f"{about}{first}", *(" " * columns_of(about) + line for line in others)]


def _plain(value: object) -> str:
    """A detail on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
