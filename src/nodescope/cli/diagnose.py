"""`nodescope diagnose`: what went wrong, and why."""

from __future__ import annotations

import argparse
from pathlib import Path

from nodescope.cli import options, window


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "diagnose",
        run,
        summary="what went wrong, and why",
        description="Find what went wrong in a recording (resets of network devices, lockups,\n"
        "held cores, failed jobs) and follow each to its cause: the core, the process, the\n"
        "kernel mechanism, the state behind it and the service that made it. Each link\n"
        "names the command that shows it. Exit code: 0 nothing wrong, 1 findings.",
        examples=[
            ("nodescope diagnose", "the whole recording"),
            ("nodescope diagnose --last 2h", "the last two hours"),
            ("nodescope diagnose --at 2026-11-16T02:11:05Z", "what happened around that moment"),
            ("nodescope diagnose --output incident.md", "a report to hand on"),
            ("nodescope diagnose --json", "for scripts"),
        ],
    )
    window.add_window(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="write the report to this file: .md or .txt",
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose, and say it."""
    from nodescope.diagnosis.diagnose import MARGIN_NS, diagnose
    from nodescope.diagnosis.document import diagnosis_document
    from nodescope.diagnosis.report import render_markdown, render_text

    moment = args.at
    if moment is not None and args.around is None:
        args.around = 4 * MARGIN_NS
    view = window.open_view(args)
    at_ns = None
    if moment is not None:
        at_ns = (view.window.from_ns + view.window.to_ns) // 2
    diagnosis = diagnose(view.segments, view.window, at_ns)
    if args.json:
        options.print_json(diagnosis_document(diagnosis))
    elif args.output is not None:
        markdown = args.output.suffix.lower() == ".md"
        text = render_markdown(diagnosis) if markdown else render_text(diagnosis)
        window.write_picture(args.output, text.encode())
    else:
        print(render_text(diagnosis, view.terminal.width))
    return 1 if diagnosis.findings else 0
