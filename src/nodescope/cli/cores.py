"""`nodescope cores`: each core's time by state, second by second."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nodescope.cli import options, window

if TYPE_CHECKING:
    from nodescope.judgement.kept_cores import KeptCore
    from nodescope.judgement.pegged_cores import PeggedCore
    from nodescope.pictures.cores import CoreSpan

_STATES = ("system", "user", "softirq", "irq", "iowait", "idle", "steal", "nice", "total")
_NAMED = 9  # spans whose process is named: each costs a look at its samples


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "cores",
        run,
        description="Show how each core spent its time, from /proc/stat: a line is a core, a\n"
        "column a second, the colour the share of a state. Where several cores or seconds must\n"
        "share a place, the worst of them is shown. The worst cores are named below.",
        examples=[
            ("nodescope cores --last 5m", "busy time; S marks system time"),
            ("nodescope cores --at 12:00:05 --around 30s --by softirq", "soft interrupts"),
            ("nodescope cores --by system --output cores.html", "time in the kernel, as a page"),
            ("nodescope cores --cpu 0-5,39 --json", "all states, for scripts"),
        ],
    )
    window.add_window(parser)
    window.add_cpu(parser)
    parser.add_argument(
        "--by",
        choices=_STATES,
        default="total",
        metavar="STATE",
        help=f"{', '.join(_STATES[:-1])}, or total: all that is busy, with what is mostly system "
        "time marked (default: total)",
    )
    parser.add_argument(
        "--interval",
        type=options.duration,
        default="1s",
        metavar="TIME",
        help="length of an interval (default: 1s; a long window takes longer ones)",
    )
    window.add_limit(parser, "only the N cores that were worst")
    window.add_output(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Derive shares, and show them."""
    from nodescope.analysis.cores import derive_shares, keep_cores
    from nodescope.judgement.kept_cores import FullSpan, collect_spans, judge_spans
    from nodescope.judgement.pegged_cores import PeggedRun, collect_runs, judge_runs
    from nodescope.pictures import cores, documents
    from nodescope.recording.core_readings import NEIGHBOUR_NS

    view, chosen = window.open_view(args, near_ns=NEIGHBOUR_NS), window.given_filter(args).cpus
    known = view.recording.count_cores(view.window) if chosen is None else len(chosen)
    interval_ns = documents.choose_interval(
        view.window.length_ns, known, args.interval, for_json=args.json
    )
    count = len(view.recording.overlapping(view.window))
    runs: list[PeggedRun] = []
    full: list[FullSpan] = []
    readings = window.with_progress(view.recording.core_readings(view.window), count)
    from_ns = view.window.from_ns // interval_ns * interval_ns
    shares = derive_shares(
        collect_spans(collect_runs(readings, runs), full),
        from_ns,
        view.window.to_ns,
        interval_ns,
        None if chosen is None else sorted(chosen),
    )
    if args.limit:
        shares = keep_cores(
            shares, {h.cpu for h in cores.find_hottest(shares, args.by, args.limit)}
        )
    if args.json:
        document, said = documents.cores_document(shares, args.interval)
        window.print_document(document)
        window.note(said)
        return 0
    heading = view.heading(f"{args.by} time of cores")
    if args.output:
        from nodescope.pictures import file_formats

        drawing = cores.draw_cores(shares, args.by, heading)
        window.write_picture(
            args.output, file_formats.drawing_file(drawing, args.output.suffix.lower())
        )
    else:
        hottest = [hot.cpu for hot in cores.find_hottest(shares, args.by, cores.HOTTEST)]
        pegged, kept = judge_runs(runs, view.window), judge_spans(full, view.window)
        spans = _find_spans(view, hottest, pegged, kept)
        print(cores.render_cores(shares, args.by, view.terminal, heading, spans))
    return 0


def _find_spans(
    view: window.OpenedView,
    hottest: Sequence[int],
    pegged: Sequence[PeggedCore],
    kept: Sequence[KeptCore],
) -> list[CoreSpan]:
    """Return the spans in which the hottest cores were pegged or kept, the first ones by whom."""
    from nodescope.pictures.cores import MOST_SPANS, CoreSpan

    spans = [
        CoreSpan(each.cpu, each.from_ns, each.to_ns, each.describe(), pegged=True, by=None)
        for each in pegged
        if each.cpu in hottest
    ]
    by_kernel = {(each.cpu, each.from_ns, each.to_ns) for each in spans}
    spans += [
        CoreSpan(each.cpu, each.from_ns, each.to_ns, each.describe(), pegged=False, by=None)
        for each in kept
        if each.cpu in hottest
        and not any(
            cpu == each.cpu and each.from_ns < to_ns and from_ns < each.to_ns
            for cpu, from_ns, to_ns in by_kernel
        )
    ]
    spans.sort(key=lambda span: (hottest.index(span.cpu), span.from_ns))
    shown = [
        span for cpu in hottest for span in [each for each in spans if each.cpu == cpu][:MOST_SPANS]
    ][:_NAMED]
    return [_name_holder(view, each) if each in shown else each for each in spans]


def _name_holder(view: window.OpenedView, span: CoreSpan) -> CoreSpan:
    from nodescope.judgement.core_occupants import find_holder
    from nodescope.recording.window import Window

    samples = view.recording.samples(Window(span.from_ns, span.to_ns))
    holder = find_holder(samples, span.cpu)
    return span if holder is None else replace(span, by=holder.describe())
