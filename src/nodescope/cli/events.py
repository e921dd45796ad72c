"""`nodescope events`: what happened, each at its time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from nodescope.cli import options, window
from nodescope.errors import UsageError

if TYPE_CHECKING:
    from nodescope.records.event import Event

_LINES = 100


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "events",
        run,
        description="List recorded, marked and imported events: kernel log messages about\n"
        "devices, cores and memory; services, containers, jobs; the recorder's own. The latest\n"
        "come last. Events that logs had from before the recording are counted below, and\n"
        "listed with --from or --to. docs/events.md lists the kinds. Exits 1 if events of that\n"
        "time cannot be read because a table is damaged.",
        examples=[
            ("nodescope events --last 1h", "the last hour"),
            ("nodescope events --serious", "resets, lockups, kills, loops"),
            ("nodescope events --kind nic_reset,oom_kill --at 12:00:05", "two kinds, one moment"),
            ("nodescope events --json", "for scripts"),
        ],
    )
    window.add_window(parser)
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="NAMES",
        help="show only these kinds, separated by commas; repeatable",
    )
    parser.add_argument(
        "--serious",
        action="store_true",
        help="show only serious events: those that freeze the minutes around them",
    )
    parser.add_argument(
        "--details", action="store_true", help="add a line with all details to each event"
    )
    window.add_limit(parser, f"only the latest N (default: {_LINES}; --json: all)")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read, and show."""
    from nodescope.pictures import documents, tables
    from nodescope.recording.pending_marks import read_waiting, with_waiting
    from nodescope.records.witness_tables import CallTraceRow

    view = window.open_view(args, history=True)
    limit = (0 if args.json else _LINES) if args.limit is None else args.limit
    every = with_waiting(
        # a segment may tell of what was before the one before it
        sorted(view.recording.events(view.window), key=lambda event: event.time_ns),
        read_waiting(options.archive_path(args)),
        view.window,
        to_now=args.end is None and args.at is None,
    )
    kinds = _kinds(args, {event.kind for event in every})
    events = [event for event in every if kinds is None or event.kind in kinds]
    before, events = _split(events, view, args)
    shown = events[-limit:]
    if args.json:
        document, said = documents.events_document(shown)
        window.print_document(document)
        window.note(said)
    else:
        left = len(events) - len(shown)
        width = options.terminal_width()
        traces = view.recording.rows(CallTraceRow, view.window)
        print(
            tables.render_events(
                shown, view.terminal, left, details=args.details, width=width, traces=traces
            )
        )
        if before:
            print(_render_before(before, view, args))
    return _report_damage(view, window.note if args.json else print)


def _report_damage(view: window.OpenedView, report: Callable[[str], None]) -> int:
    """Report that events cannot be read, and return the exit code: an empty list is no silence."""
    from nodescope.wall_time import format_span

    damaged = view.recording.coverage("events", view.window).damaged
    for each in damaged:
        span = format_span(each.span.from_ns, each.span.to_ns)
        report(f"events {span} cannot be read: {each.file}: {each.reason}")
    return 1 if damaged else 0


def _split(
    events: list[Event], view: window.OpenedView, args: argparse.Namespace
) -> tuple[list[Event], list[Event]]:
    """Return what logs remembered of before the recording, and the rest.

    Nothing is split off where the options name a start, or end before the recording.
    """
    first_ns = view.recording.extent.from_ns
    if args.json or args.start is not None or args.at is not None or view.window.to_ns <= first_ns:
        return [], events
    before = [event for event in events if event.time_ns < first_ns]
    return before, events[len(before) :]


def _render_before(before: list[Event], view: window.OpenedView, args: argparse.Namespace) -> str:
    """Return how many events logs remembered of before the recording, and what shows them."""
    from collections import Counter

    from nodescope.pictures.text import visible
    from nodescope.quantities import format_count
    from nodescope.records.view import Span, View

    counts = Counter(event.kind for event in before).most_common()
    kinds = ", ".join(f"{count:,} {visible(kind)}" for kind, count in counts)
    named = tuple(name.strip() for text in args.kind for name in text.split(",") if name.strip())
    until = Span(None, view.recording.extent.from_ns)
    earlier = View("events", until, kinds=named, serious=args.serious)
    marked = any(event.kind == "mark" for event in before)
    origin = "logs and marks" if marked else "logs"
    said = f"before the recording, from {origin}: {format_count(len(before), 'event')} ({kinds})"
    return f"\n{said}\n  $ {options.command_of(earlier, args)}"


def _kinds(args: argparse.Namespace, recorded: set[str]) -> set[str] | None:
    """Return the kinds asked for; None for all. An imported log may have undeclared ones."""
    from nodescope.records.event_kinds import EVENT_KINDS

    named = {name.strip() for text in args.kind for name in text.split(",") if name.strip()}
    if unknown := sorted(named - EVENT_KINDS.keys() - recorded):
        here = ", ".join(sorted(recorded)) or "none in this window"
        raise UsageError(
            f"no such kind of event: {', '.join(unknown)}",
            hint=f"recorded here: {here}; docs/events.md lists all kinds",
        )
    if not args.serious:
        return named or None
    serious = {kind.name for kind in EVENT_KINDS.values() if kind.serious}
    return serious & named if named else serious
