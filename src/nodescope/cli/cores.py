"""`nodescope cores`: each core's time by state, second by second."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from nodescope.cli import options, window

if TYPE_CHECKING:
    from nodescope.judgement.core_spans import CoreSpans
    from nodescope.pictures.cores import CoreSpan
    from nodescope.recording.sample_columns import SampleColumns
    from nodescope.recording.window import Window

    _Samples: TypeAlias = Callable[[Window], Iterable[SampleColumns]]

_STATES = ("system", "user", "softirq", "irq", "iowait", "idle", "steal", "nice", "total")
_SPANS = 3  # of each core that are listed: to name who had it costs a look at its samples


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
    parser.add_argument(
        "--spans",
        type=window.whole_number,
        default=_SPANS,
        metavar="N",
        help="times that a core was pegged or kept: list the N longest of each core "
        f"(default: {_SPANS}; 0 is all)",
    )
    window.add_output(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Derive shares, and show them."""
    from nodescope.analysis.cores import derive_shares, keep_cores
    from nodescope.judgement.core_spans import REACH_NS, CoreSpans
    from nodescope.pictures import cores, documents
    from nodescope.recording.core_readings import NEIGHBOUR_NS

    view, chosen = window.open_view(args, near_ns=NEIGHBOUR_NS), window.given_filter(args).cpus
    known = view.recording.count_cores(view.window) if chosen is None else len(chosen)
    interval_ns = documents.choose_interval(
        view.window.length_ns, known, args.interval, for_json=args.json
    )
    count = len(view.recording.overlapping(view.window))
    further = functools.cache(lambda: window.open_view(args, near_ns=REACH_NS).recording)
    found = CoreSpans(lambda beyond: further().core_readings(beyond), view.window)
    readings = window.with_progress(view.recording.core_readings(view.window), count)
    from_ns = view.window.from_ns // interval_ns * interval_ns
    shares = derive_shares(
        found.collect(readings),
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
        found.follow()

        def samples(span: Window) -> Iterable[SampleColumns]:
            near = view.window.widened(NEIGHBOUR_NS)
            inside = near.from_ns <= span.from_ns and span.to_ns <= near.to_ns
            return (view.recording if inside else further()).samples(span)

        spans = _find_spans(hottest, found, args.spans, samples)
        print(cores.render_cores(shares, args.by, view.terminal, heading, spans, args.spans))
    return 0


def _find_spans(
    hottest: Sequence[int], found: CoreSpans, listed: int, samples: _Samples
) -> list[CoreSpan]:
    """Return when the hottest cores were pegged or kept, longest first; the listed by whom."""
    from nodescope.pictures.cores import CoreSpan

    spans: list[CoreSpan] = []
    judged, by_kernel = found.spans, found.pegged
    for cpu in hottest:
        mine = [each for each in judged if each.cpu == cpu]
        mine.sort(key=lambda each: (each.from_ns - each.to_ns, each.from_ns))
        for place, each in enumerate(mine):
            pegged, cut = each in by_kernel, found.is_cut(each)
            span = CoreSpan(cpu, each.from_ns, each.to_ns, each.describe(), pegged, None, *cut)
            named = not listed or place < listed
            spans.append(_name_holder(span, samples(each.window)) if named else span)
    return spans


def _name_holder(span: CoreSpan, samples: Iterable[SampleColumns]) -> CoreSpan:
    from nodescope.judgement.core_occupants import find_holder

    holder = find_holder(samples, span.cpu)
    return span if holder is None else replace(span, by=holder.describe())
