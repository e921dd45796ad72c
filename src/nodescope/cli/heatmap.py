"""`nodescope heatmap`: sub-second offsets by seconds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options, window
from nodescope.errors import UsageError

if TYPE_CHECKING:
    from nodescope.exchange.glance import Glance


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "heatmap",
        run,
        description="Show when samples were taken: a column is a second, a row an offset within\n"
        "it, the colour the number. It shows patterns that an average hides: a stall, a burst,\n"
        "something that happens every 250 ms. A long window is shown in wider columns.\n"
        "FILE may also be a capture that is not imported: perf.data (--cpu, --pid and --mode\n"
        "choose samples), or text of perf script. Other captures do not say when samples were\n"
        "taken.",
        examples=[
            ("nodescope heatmap --last 2m", "the last two minutes of all cores"),
            ("nodescope heatmap --at 12:00:05 --around 30s --comm kubelet", "one process"),
            ("nodescope heatmap --cpu 39 --mode kernel --output core.svg", "a picture"),
            ("nodescope heatmap --frame mem_cgroup --json", "for scripts"),
            ("nodescope heatmap perf.data", "a capture that is not imported"),
        ],
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="what --archive names, a perf.data file, or text of perf script",
    )
    window.add_window(parser)
    window.add_filters(parser)
    parser.add_argument(
        "--rows",
        type=options.positive,
        metavar="N",
        help="rows per column, at most 1000 (default: 50; in a terminal, as many as fit)",
    )
    window.add_limit(parser, "at most N columns (default: one per second, or what fits)")
    window.add_output(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Count, and show."""
    from nodescope.exchange.glance import import_aside, is_perf_data, is_recording

    if args.file and args.archive:
        raise UsageError("FILE and --archive both name a recording", hint="give only one of them")
    args.archive = args.file or args.archive
    path = options.archive_path(args)
    if is_perf_data(path):
        view, glance = window.open_glance(args, path)
        _show(args, view, glance)
        return 1 if glance.stopped else 0
    if is_recording(path):
        return _show(args, window.open_view(args, near_ns=0), None)
    with import_aside(path) as (args.archive, stopped):
        window.note(stopped)
        _show(args, window.open_view(args, near_ns=0), None)
        return 1 if stopped else 0


def _show(args: argparse.Namespace, view: window.OpenedView, glance: Glance | None) -> int:
    from nodescope.analysis.heatmap import count_times, make_heatmap
    from nodescope.exchange.glance import choose_glanced
    from nodescope.pictures import documents, heatmap

    chosen = window.build_filter(args)
    from_ns, to_ns = view.window.from_ns, view.window.to_ns
    rows = min(args.rows or 50, 1000)
    if args.json:
        fitting = documents.HEATMAP_CELLS // rows
    elif args.output:
        fitting = heatmap.PICTURE_COLUMNS
    else:
        rows = min(args.rows or heatmap.terminal_rows(view.terminal), 1000)
        fitting = heatmap.terminal_columns(view.terminal)
    columns = min(fitting, args.limit or fitting)
    if glance is None:
        made = make_heatmap(view.parts(), chosen, from_ns, to_ns, rows, columns)
    else:
        times = choose_glanced(glance, chosen, from_ns, to_ns)
        made = count_times([times], from_ns, to_ns, rows, columns)
    empty = glance is None and not made.counts.any()
    why = view.explain_no_samples(args) if empty else None
    if args.json:
        document, said = documents.heatmap_document(made)
        window.print_document(document)
        window.note(why or said)
        return 0
    heading = view.heading("heatmap", int(made.counts.sum()))
    if args.output:
        from nodescope.pictures import file_formats

        drawing = heatmap.draw_heatmap(made, heading)
        window.write_picture(
            args.output, file_formats.drawing_file(drawing, args.output.suffix.lower())
        )
        window.note(why)
    else:
        print(heatmap.render_heatmap(made, view.terminal, heading))
        if why:
            print(why)
    return 0
