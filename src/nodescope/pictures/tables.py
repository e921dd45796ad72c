"""`top` and `events` as tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from nodescope.analysis.top import TopEntry
from nodescope.pictures.colour import NIGHT, one
from nodescope.pictures.terminal import Terminal, bar
from nodescope.pictures.text import columns_of, fit, fit_end, pad, percent, visible
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.records.event import Event
from nodescope.wall_time import format_moment


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
    if not entries:
        return "no samples"
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
    events: Sequence[Event], terminal: Terminal, left: int = 0, *, details: bool = False
) -> str:
    """One line each, oldest first; `details` adds a second one with what else is known."""
    if not events:
        return "no events"
    kinds = [visible(event.kind) for event in events]
    subjects = [visible(event.subject) for event in events]
    kind = min(max(map(columns_of, ["kind", *kinds])), 24)
    subject = min(max(map(columns_of, ["subject", *subjects])), 32)
    cores = any(event.cpu is not None for event in events)
    lines = [f"… {left:,} earlier: --limit 0 shows all"] if left else []
    core = "core  " if cores else ""
    lines.append(f"{'time':<24}  {pad('kind', kind)}  {pad('subject', subject)}  {core}message")
    lines = [terminal.faint(line) for line in lines]
    room = max(terminal.width - 30 - len(core) - kind - subject, 20)
    for event, a_kind, a_subject in zip(events, kinds, subjects, strict=True):
        message = visible(event.message, 4096)
        if terminal.colours != "none":  # a person's screen; a file keeps the whole line
            message = fit(message, room)
        if cores:
            message = f"{'' if event.cpu is None else event.cpu:>4}  {message}"
        about = f"{pad(a_kind, kind)}  {pad(a_subject, subject)}"
        lines.append(f"{format_moment(event.time_ns)}  {about}  {message}".rstrip())
        if details and event.details:
            pairs = (f"{name}={_plain(value)}" for name, value in event.details.to_json().items())
            lines.append(terminal.faint(f"{'':<24}  {visible('  '.join(pairs), 4096)}"))
    return "\n".join(lines)


def _plain(value: object) -> str:
    """A detail on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
