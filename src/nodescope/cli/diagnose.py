"""`nodescope diagnose`: what went wrong, and why."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import moment, options, window

if TYPE_CHECKING:
    from nodescope.diagnosis.finding import Diagnosis


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "diagnose",
        run,
        description="Find what went wrong in a recording (resets of network devices, lockups,\n"
        "pegged cores, failed jobs) and follow each to its cause: the core, the process, the\n"
        "kernel mechanism, the state behind it and the service that made it. Each link\n"
        "names the command that shows it. Then the conditions: what lasts at the end of that time\n"
        "and wastes or will harm (loops, zombies, throttling, limits nearly reached). With --at:\n"
        "what went wrong near that moment (two minutes before and after, unless --around says\n"
        "otherwise), else what stands out in it, and the conditions at that moment. Exit code: 0\n"
        "neither incident nor condition, 1 either, 2 it could not run, or nothing was found and\n"
        "the kernel log was not recorded or a table of that time is damaged.",
        examples=[
            ("nodescope diagnose", "the whole recording"),
            ("nodescope diagnose --last 2h", "the last two hours"),
            ("nodescope diagnose --at 2026-11-16T02:11:05Z", "what happened around that moment"),
            ("nodescope diagnose --output incident.html", "a report with pictures, to hand on"),
            ("nodescope diagnose --json", "for scripts"),
        ],
    )
    window.add_window(parser, around="2m")
    parser.add_argument(
        "--output",
        type=_report_path,
        metavar="FILE",
        help="write the report to this file: .html (with pictures), .md or .txt",
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Diagnose, and say it."""
    from nodescope.diagnosis.diagnose import AROUND_NS, diagnose
    from nodescope.diagnosis.report.document import diagnosis_document
    from nodescope.diagnosis.report.text import render_markdown, render_text

    if args.at is not None and args.around is None:
        args.around = AROUND_NS
    view = window.open_view(args)
    at_ns = None
    if args.at is not None:
        now_ns = time.time_ns()
        at_ns = moment.parse_time_ns(args.at, view.recording.extent, now_ns)
        moment.check_recorded(at_ns, view.recording.extent, now_ns)
    diagnosis = diagnose(view.recording, view.window, at_ns)
    diagnosis.archive = options.named_archive(args)
    if args.json:
        options.print_json(diagnosis_document(diagnosis))
    elif args.output is not None:
        kinds: dict[str, Callable[[], str]] = {
            ".html": lambda: _page(view, diagnosis),
            ".md": lambda: render_markdown(diagnosis),
            ".txt": lambda: render_text(diagnosis),
        }
        window.write_picture(args.output, kinds[args.output.suffix.lower()]().encode())
    else:
        print(render_text(diagnosis, view.terminal.width))
    return {True: 0, False: 1, None: 2}[diagnosis.healthy]


def _page(view: window.OpenedView, diagnosis: Diagnosis) -> str:
    from nodescope.diagnosis.case import Case
    from nodescope.diagnosis.report.html import render_page

    return render_page(diagnosis, Case(view.recording, view.window), view.node)


def _report_path(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in (".html", ".md", ".txt"):
        raise argparse.ArgumentTypeError(
            f"not a kind of report: {text!r}; it may end in .html, .md or .txt"
        )
    return path
