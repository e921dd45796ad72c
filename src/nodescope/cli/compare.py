"""`nodescope compare`: what is different in a window, against the time before it or another."""

from __future__ import annotations

import argparse
import functools
import time
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.cli import window as windows
from nodescope.cli.moment import parse_time_ns
from nodescope.errors import UsageError

if TYPE_CHECKING:
    from nodescope.recording.window import TimeExtent, Window

DEFAULT_LIMIT = 20
_LISTED = 200


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "compare",
        run,
        description="Compare a window with the half hour before it, or with another window: which\n"
        "processes, functions and cores have more or fewer samples, by how much, and how\n"
        "surely. The test allows for how bursty each count is on this node; it flags what is\n"
        "new, gone, or has changed by a factor of two and by one point of share.",
        examples=[
            ("nodescope compare --at 12:00:05 --around 5s", "the moment something broke"),
            ("nodescope compare --last 30s --baseline 2h", "now against the last two hours"),
            (
                "nodescope compare --from +60s --to +90s --against-from +0s --against-to +60s",
                "two windows",
            ),
            ("nodescope compare --last 10s --mode kernel --json", "for scripts"),
        ],
    )
    windows.add_window(parser)
    parser.add_argument(
        "--baseline",
        type=options.duration,
        metavar="TIME",
        help="compare with this much time before the window (default: 30m)",
    )
    parser.add_argument(
        "--against-from", metavar="WHEN", help="compare with another window instead: its start"
    )
    parser.add_argument("--against-to", metavar="WHEN", help="end of the other window")
    windows.add_filters(parser)
    windows.add_limit(parser, f"show this many changes (default: {DEFAULT_LIMIT}, JSON {_LISTED})")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Compare and show."""
    from nodescope.analysis.compare import compare
    from nodescope.pictures.answer_size import fit_list
    from nodescope.pictures.compare import compare_document, render_comparison
    from nodescope.recording.sample_columns import SampleColumns

    if not (args.at or args.last or args.start or args.end):
        raise UsageError(
            "which window is to be compared?", hint="as in --at 12:00:05 --around 5s, or --last 30s"
        )
    view = windows.open_view(args)
    against = _against(args, view.window, view.recording.extent)

    def parts(window: Window) -> list[functools.partial[SampleColumns]]:
        return [
            functools.partial(SampleColumns, segment, window.from_ns, window.to_ns)
            for segment in view.recording.overlapping(window)
        ]

    listed = _LISTED if args.limit is None else args.limit
    comparison = compare(
        parts(view.window),
        parts(against),
        (view.window.from_ns, view.window.to_ns),
        (against.from_ns, against.to_ns),
        windows.build_filter(args),
        listed=listed if args.json else max(listed, _LISTED) * bool(listed),
    )
    for note in comparison.notes if comparison.samples else [view.explain_no_samples(args)]:
        windows.note(note)
    if args.json:
        document, said = fit_list(compare_document(comparison.changes, comparison.windows))
        windows.note(said)
        windows.print_document(document)
    elif comparison.samples:
        limit = DEFAULT_LIMIT if args.limit is None else args.limit
        print(render_comparison(comparison, view.terminal, limit))
    return 0


def _against(args: argparse.Namespace, window: Window, extent: TimeExtent) -> Window:
    from nodescope.analysis.compare import BASELINE_NS
    from nodescope.recording.window import Window

    if args.against_from is None and args.against_to is None:
        return Window(window.from_ns - (args.baseline or BASELINE_NS), window.from_ns)
    if args.baseline is not None or args.against_from is None or args.against_to is None:
        raise UsageError(
            "another window has a start and an end, and no baseline",
            hint="give --against-from and --against-to, or --baseline",
        )
    now_ns = time.time_ns()
    other = Window(
        parse_time_ns(args.against_from, extent, now_ns),
        parse_time_ns(args.against_to, extent, now_ns),
    )
    if other.to_ns <= other.from_ns:
        raise UsageError(
            "the window to compare with ends before it starts",
            hint="--against-from is the earlier one",
        )
    return other
