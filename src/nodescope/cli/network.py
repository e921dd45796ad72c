"""`nodescope network`: network devices, the cores that serve them, and cores that starve."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nodescope.cli import options, window
from nodescope.quantities import SECOND_NS

if TYPE_CHECKING:
    from nodescope.analysis.network import Network

_ROWS = 20


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "network",
        run,
        description="Show each network device with its driver, its queues, their interrupts and\n"
        "the cores those came to; resets, timeouts and what else the driver counted; and for\n"
        "each core its packet work, and for how long it was starved: packets waited for it and\n"
        "it served none. Counts are rises in the window.",
        examples=[
            ("nodescope network --last 10m", "the last ten minutes"),
            ("nodescope network --at 12:00:05 --around 30s", "around an incident"),
            ("nodescope network --now --for 5s", "right now, without a recording"),
            ("nodescope network --json", "for scripts"),
        ],
    )
    window.add_window(parser)
    parser.add_argument(
        "--now", action="store_true", help="show this machine now instead of a recording"
    )
    parser.add_argument(
        "--for",
        dest="length",
        type=options.duration,
        metavar="TIME",
        help="with --now: observe for TIME (default: 1s)",
    )
    window.add_limit(parser, f"only N queues of each device and N cores (default: {_ROWS})")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Derive from a recording or from a look, and show."""
    import os
    import sys

    from nodescope.pictures.network import network_document, render_network
    from nodescope.pictures.terminal import detect_terminal

    if args.now or args.length is not None:
        network, heading, events = _look(args), None, None
    else:
        network, heading, events = _read(args)
    if args.json:
        document, said = network_document(network)
        window.print_document(document)
        window.note(said)
    else:
        limit = _ROWS if args.limit is None else args.limit
        if heading:
            print(heading)
        print(render_network(network, detect_terminal(sys.stdout, os.environ), limit, events))
    return 0


def _look(args: argparse.Namespace) -> Network:
    from nodescope.errors import UsageError
    from nodescope.recorder.network_now import observe_network
    from nodescope.sources.places import Places

    if not args.now:
        raise UsageError("--for needs --now", hint="a recording is chosen by --last or --at")
    if any((args.at, args.last, args.start, args.end)):
        raise UsageError("--now reads no recording", hint="leave out --at, --last, --from, --to")
    return observe_network(Places(), args.length or SECOND_NS)


def _read(args: argparse.Namespace) -> tuple[Network, str, str]:
    """Return what was recorded, a heading, and the command that lists all that happened."""
    from nodescope.analysis.network import derive_network
    from nodescope.records.view import Span, View

    view = window.open_view(args)
    touched = view.recording.overlapping(view.window)
    parts = window.with_progress(touched, len(touched))
    network = derive_network(view.recording, view.window, parts)
    shown = View("events", Span(view.window.from_ns, view.window.to_ns))
    return network, view.heading("network"), options.command_of(shown, args)
