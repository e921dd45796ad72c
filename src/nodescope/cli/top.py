"""`nodescope top`: what ran most."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nodescope.cli import options, window

if TYPE_CHECKING:
    from nodescope.analysis.top import TopEntry

_KEYS = ("comm", "cpu", "function", "cgroup", "pid")
_LINES = 20


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "top",
        run,
        description="Rank samples by process name, core, function, cgroup or process, with the\n"
        "CPU time they stand for. For functions, `total` counts every sample it was on the\n"
        "stack of, once, and `self` those it ran in itself.",
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
    from nodescope.analysis.sampled_time import derive_sample_seconds
    from nodescope.analysis.top import find_summed, rank
    from nodescope.pictures import documents, tables
    from nodescope.recording.core_readings import NEIGHBOUR_NS

    chosen, view = window.build_filter(args), window.open_view(args, near_ns=NEIGHBOUR_NS)
    entries = rank(view.parts(find_summed(chosen, args.by)), chosen, args.by)
    limit = (0 if args.json else _LINES) if args.limit is None else args.limit
    shown = entries[: limit or None]
    sample_s = derive_sample_seconds(view.recording, view.window)
    names = _names(view, shown, args.by)
    if args.json:
        document, said = documents.top_document(shown, sample_s, names)
        window.print_document(document)
        window.note(said if entries else view.explain_no_samples(args))
    elif not entries:
        print(f"{view.terminal.bold(view.heading('top', 0))}\n{view.explain_no_samples(args)}")
    else:
        left = len(entries) - len(shown)
        table = tables.render_top(shown, args.by, view.terminal, left, sample_s, names)
        print(f"{_heading(view, entries)}\n{table}")
    return 0


def _names(view: window.OpenedView, shown: Sequence[TopEntry], by: str) -> dict[str, str]:
    """Return the names of processes by pid; nothing for other keys."""
    from nodescope.analysis.sampled_time import name_processes

    if by != "pid" or not shown:
        return {}
    found = name_processes(view.parts(), {int(entry.name) for entry in shown})
    return {str(pid): name for pid, name in found.items()}


def _sampled_idle(view: window.OpenedView) -> float:
    """Return the share of samples of idle cores: captures of other tools have them, too."""
    from nodescope.analysis.filter import Filter
    from nodescope.analysis.top import rank

    entries = rank(view.parts(), Filter(), "comm")
    return sum(each.share for each in entries if each.name.partition("/")[0] == "swapper")


def _heading(view: window.OpenedView, entries: Sequence[TopEntry]) -> str:
    """Return what is ranked, of which node and when, what shares are of, and how idle it was."""
    from nodescope.analysis.sampled_time import derive_idle_share
    from nodescope.pictures.text import percent

    samples = sum(entry.samples for entry in entries)
    if entries[0].own is not None:  # a sample counts for every function on its stack
        samples = round(entries[0].samples / entries[0].share)
    idle = derive_idle_share(view.recording, view.window)
    how_idle = "how idle the cores were is not known"
    if idle is not None:
        how_idle = f"the cores were {percent(idle)} idle"
    whole = "the chosen samples" if view.filter else "the busy time of all cores"
    if idle is None and not view.filter and (unused := _sampled_idle(view)):
        whole = "all samples"
        how_idle = f"{percent(unused)} of them are of idle cores (swapper)"
    said = f"shares are of {whole}; {how_idle}"
    heading = view.terminal.bold(view.heading("top", samples))
    return f"{heading}\n{view.terminal.faint(said)}"
