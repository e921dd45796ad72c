"""`nodescope mark`: put a moment on the time axis."""

from __future__ import annotations

import argparse
import time

from nodescope.cli import options
from nodescope.cli.moment import parse_time_ns, read_extent
from nodescope.errors import UsageError
from nodescope.wall_time import format_moment


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
    options.add_archive(parser)
    parser.add_argument("text", metavar="TEXT", help="text of the note")
    parser.add_argument(
        "--at",
        metavar="WHEN",
        help="when it happened: a wall time (UTC unless a zone is given), 12:00:05 of the "
        "recording's day, or +60s from its start (default: now)",
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
    from nodescope.archive.marks import write_mark
    from nodescope.recorder.mark import make_mark

    if not args.text.strip():
        raise UsageError("a mark without a text", hint="say in a few words what happened")
    now_ns = time.time_ns()
    archive = options.archive_path(args)
    at_ns = None if args.at is None else parse_time_ns(args.at, read_extent(archive), now_ns)
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
