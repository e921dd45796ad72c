"""`nodescope events`: what happened, each at its time."""

from __future__ import annotations

import argparse

from nodescope.cli import options, window

_LINES = 100


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "events",
        run,
        summary="what happened, each at its time",
        description="List recorded and imported events: kernel messages, services, the recorder's\n"
        "own. The latest stand last.",
        examples=[
            ("nodescope events --last 1h", "the last hour"),
            ("nodescope events --kind kernel --at 12:00:05 --around 1m", "one kind, one moment"),
            ("nodescope events --json", "for scripts"),
        ],
    )
    window.add_window(parser)
    parser.add_argument(
        "--kind",
        action="append",
        default=[],
        metavar="NAME",
        help="only events of this kind; may be given again",
    )
    window.add_limit(parser, f"only the latest N (default: {_LINES}; --json: all)")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read, and show."""
    from nodescope.analysis.window import read_events
    from nodescope.pictures import documents, tables

    view = window.open_view(args)
    limit = (0 if args.json else _LINES) if args.limit is None else args.limit
    events = [
        event
        for event in read_events(view.segments, view.window)
        if not args.kind or event.kind in args.kind
    ]
    shown = events[-limit:]
    if args.json:
        document, said = documents.events_document(shown)
        window.print_document(document)
        window.note(said)
    else:
        print(tables.render_events(shown, view.terminal, len(events) - len(shown)))
    return 0
