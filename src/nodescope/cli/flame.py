"""`nodescope flame`: which paths of functions ran."""

from __future__ import annotations

import argparse

from nodescope.cli import options, window

_GROUPS = ("comm", "cpu", "cgroup", "pod", "pid", "none")


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "flame",
        run,
        description="Show samples by path of functions: as an indented tree, or with --output as\n"
        "a flame graph. An .html page zooms by click and searches. Frames narrower than\n"
        "half a pixel are left out.",
        examples=[
            ("nodescope flame --at 12:00:05 --around 2.5s", "five seconds"),
            ("nodescope flame --cpu 39 --inverted", "one core, from the innermost function out"),
            ("nodescope flame --by cgroup --output node.html", "by cgroup, to zoom and search"),
            ("nodescope flame --last 12h --json", "for scripts"),
        ],
    )
    window.add_window(parser)
    window.add_filters(parser)
    by = parser.add_argument(
        "--by",
        choices=_GROUPS,
        default="comm",
        metavar="WHAT",
        help="what stands at the root: comm, cpu, cgroup, pod, pid or none (default: comm)",
    )
    options.add_old_spelling(parser, "--merge", by)
    parser.add_argument(
        "--inverted",
        action="store_true",
        help="start at the innermost function and go to its callers",
    )
    window.add_limit(parser, "the N widest lines (default: 40; files and --json: all)")
    window.add_output(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Sum up, prune, and show."""
    from nodescope.analysis.flame import find_summed, flame_of
    from nodescope.analysis.flame_rows import FlameNames, widest
    from nodescope.pictures import documents, flame

    chosen, view = window.build_filter(args), window.open_view(args, near_ns=0)
    names, count = FlameNames(), len(view.recording.overlapping(view.window))
    rows = flame_of(
        view.parts(find_summed(chosen, args.by, args.inverted, count)),
        chosen,
        names,
        inverted=args.inverted,
        group=args.by,
        count=count,
    )
    if args.limit and (args.json or args.output):
        rows = widest(rows, args.limit)
    tree, said = documents.flame_document(rows, names)
    empty = None if tree["value"] else view.explain_no_samples(args)
    if args.json:
        window.print_document(tree)
        window.note(empty or said)
        return 0
    heading = view.heading("flame graph", tree["value"])
    if args.output:
        from nodescope.pictures import file_formats

        content = file_formats.flame_file(
            tree, heading, args.output.suffix.lower(), inverted=args.inverted
        )
        window.write_picture(args.output, content)
        window.note(empty)
    else:
        limit = flame.DEFAULT_LINES if args.limit is None else args.limit
        print(flame.render_flame(tree, view.terminal, heading, limit))
        if empty:
            print(empty)
    window.note(said)
    return 0
