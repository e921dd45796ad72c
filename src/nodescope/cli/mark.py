"""`nodescope mark`: put a moment on the time axis."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.cli.moment import parse_time_ns, read_extent
from nodescope.errors import UsageError
from nodescope.quantities import SECOND_NS
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.recording.window import TimeExtent

_SKEW_NS = 5 * SECOND_NS  # the clock of whoever names the time may be ahead of this one's
_ZONE = "without a zone a time is UTC, without a date it is of the recording's last day"


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "mark",
        run,
        description="Add an event at the present moment, or at another one, to the recording:\n"
        "a deployment, a test that began, a job that failed. Works while a\n"
        "recorder runs, and when none does. A failed job freezes the minutes around it.",
        examples=[
            ("nodescope mark 'rollout of 2.4'", "now"),
            ("nodescope mark 'users complain' --at '5m ago'", "another moment"),
            (
                "nodescope mark 'exit 137' --kind job_failed --subject train-7",
                "a failure, by the job's own script",
            ),
        ],
    )
    options.add_archive(parser, writes=True)
    parser.add_argument("text", metavar="TEXT", help="text of the note")
    parser.add_argument(
        "--at",
        metavar="WHEN",
        help=f"when it happened, not after now: {options.WHEN_HELP} (default: now)",
    )
    parser.add_argument(
        "--kind",
        choices=("mark", "job_failed"),
        default="mark",
        help="kind of event (default: mark)",
    )
    parser.add_argument(
        "--subject", default="node", metavar="NAME", help="subject of the event (default: node)"
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Leave the mark, and say when it is."""
    from nodescope.archive.layout import read_archive_info
    from nodescope.archive.marks import write_mark
    from nodescope.recorder.mark import make_mark

    if not args.text.strip():
        raise UsageError("a mark without a text", hint="say in a few words what happened")
    archive = options.archive_path(args)
    read_archive_info(archive)  # a wrong path is an error, whatever the time
    at_ns = None if args.at is None else _marked_ns(args.at, read_extent(archive), time.time_ns())
    mark = make_mark(args.text, args.kind, args.subject, at_ns)
    write_mark(archive, mark)
    if args.json:
        options.print_json(
            {
                "id": mark.id,
                "kind": mark.kind,
                "subject": mark.subject,
                "text": mark.text,
                "time": format_moment(mark.wall_ns),
                "time_ns": mark.wall_ns,
            }
        )
    else:
        print(f"marked {format_moment(mark.wall_ns)}  {mark.text}")
    return 0


def _marked_ns(text: str, extent: TimeExtent | None, now_ns: int) -> int:
    """Return the moment to mark; refuse one that is yet to come."""
    at_ns = parse_time_ns(text, extent, now_ns)
    if at_ns > now_ns + _SKEW_NS:
        raise UsageError(
            f"{format_moment(at_ns)} is in the future: it is {format_moment(now_ns)} now",
            hint=f"a mark is of something that happened; {_ZONE}",
        )
    if extent is not None and at_ns < extent.from_ns:
        print(
            f"nodescope: {format_moment(at_ns)} is before the recording, which starts at "
            f"{format_moment(extent.from_ns)}; {_ZONE}",
            file=sys.stderr,
        )
    return at_ns
