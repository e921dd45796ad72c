"""`nodescope top`: what ran most."""

from __future__ import annotations

import argparse

from nodescope.cli import options, window

_KEYS = ("comm", "cpu", "function", "cgroup", "pid")
_LINES = 20


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "top",
        run,
        description="Rank samples by process name, core, function, cgroup or process. For\n"
        "functions, `total` counts every sample it was on the stack of, once, and `self` those\n"
        "it ran in itself.",
        examples=[
            ("nodescope top --last 5m", "by process name"),
            ("nodescope top --by function --mode kernel", "where the kernel spends its time"),
            ("nodescope top --by cpu --comm kubelet --json", "for scripts"),
        ],
    )
    window.add_window(parser)
    window.add_filters(parser)
    parser.add_argument(
        "--by",
        choices=_KEYS,
        default="comm",
        metavar="KEY",
        help="comm, cpu, function, cgroup or pid (default: comm)",
    )
    window.add_limit(parser, f"at most N lines (default: {_LINES}; --json: all)")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Rank, and show."""
    from nodescope.analysis.top import rank
    from nodescope.pictures import documents, tables

    chosen, view = window.build_filter(args), window.open_view(args)
    entries = rank(view.parts(), chosen, args.by)
    limit = (0 if args.json else _LINES) if args.limit is None else args.limit
    shown = entries[: limit or None]
    if args.json:
        document, said = documents.top_document(shown)
        window.print_document(document)
        window.note(said)
    else:
        print(tables.render_top(shown, args.by, view.terminal, len(entries) - len(shown)))
    return 0
