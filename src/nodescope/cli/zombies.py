"""`nodescope zombies`: memory cgroups that were removed and are still held."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS

if TYPE_CHECKING:
    from nodescope.judgement.cgroup_churn import Churn
    from nodescope.judgement.zombie_history import History
    from nodescope.judgement.zombie_report import Report
    from nodescope.sources.cgroups.watch import Heard
    from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy

_EXIT_CODES = {"healthy": 0, "warn": 1, "critical": 1, "unknown": 2}
_SAMPLED = 16
_SEARCH_NS = MINUTE_NS


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "zombies",
        run,
        description="Count memory cgroups: tracked by the kernel, visible, and dying (removed but\n"
        "pinned by tmpfs, page cache or swap); show their parents, what pins them, what\n"
        "they cost, and what would free them on this kernel. Needs no recording, writes nothing.\n"
        "Exits 0 when healthy, 1 past a threshold, 2 when it could not run.",
        examples=[
            ("nodescope zombies", "now, in a fraction of a second"),
            ("nodescope zombies --watch 60s", "who makes them"),
            ("nodescope zombies --files", "which files pin them"),
            ("nodescope zombies --files /dev/shm", "… searched only there: at once"),
            ("nodescope zombies --trend --parents", "all parents; growth as recorded"),
            ("nodescope zombies --at 12:00:05 --parents", "as they were then, from the recording"),
            ("nodescope zombies --json", "for scripts"),
        ],
    )
    parser.add_argument("--parents", action="store_true", help="show every parent, not the first 5")
    parser.add_argument(
        "--watch",
        type=options.duration,
        metavar="TIME",
        help="watch for TIME which processes create cgroups and which cgroups persist (root)",
    )
    parser.add_argument(
        "--files",
        nargs="*",
        type=Path,
        metavar="DIR",
        help="search for the files that pin them, everywhere or below these folders (root)",
    )
    parser.add_argument(
        "--search-time",
        type=options.duration,
        default=_SEARCH_NS,
        metavar="TIME",
        help="search for files for at most TIME (default: 60s)",
    )
    parser.add_argument(
        "--pages",
        nargs="?",
        choices=("sampled", "all"),
        const="sampled",
        metavar="all",
        help="scan memory for the owners of pages: one block in 16, or `all` (root)",
    )
    parser.add_argument(
        "--trend", action="store_true", help="show the trend of the last hour, from a recording"
    )
    parser.add_argument(
        "--at",
        metavar="WHEN",
        help=f"show this moment of a recording instead of the system now: {options.WHEN_HELP}",
    )
    options.add_archive(parser)
    parser.add_argument(
        "--root",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="read the host mounted here instead of this system",
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Look, judge, print."""
    if args.at is not None:
        return _show_recorded(args)
    from nodescope.judgement.zombie_report import assess
    from nodescope.pictures.zombie_document import report_document
    from nodescope.pictures.zombies import render_report
    from nodescope.sources.memory_cgroups.counts import Counting
    from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
    from nodescope.sources.memory_cgroups.survey import take_look
    from nodescope.sources.places import Places

    hierarchy = find_memory_hierarchy(Places(args.root))
    if args.watch is not None:
        earlier = time.monotonic_ns(), Counting(hierarchy).read()
        heard, makers, held = _watch(hierarchy, args.watch)
        report = assess(take_look(hierarchy, earlier=earlier, heard=held), _history(args))
        report.heard, report.makers = heard, makers
    else:
        report = assess(take_look(hierarchy), _history(args))
    if args.files is not None:
        _search(report, hierarchy, args.files, args.search_time)
    if args.pages is not None:
        _scan(report, hierarchy, 1 if args.pages == "all" else _SAMPLED)
    if args.json:
        options.print_json(report_document(report))
    else:
        print(render_report(report, all_parents=args.parents, width=options.terminal_width()))
    return _EXIT_CODES[report.verdict.level]


def _show_recorded(args: argparse.Namespace) -> int:
    """Judge what a recording had at a moment; nothing of this system is looked at."""
    from nodescope.cli.moment import open_moment
    from nodescope.errors import UsageError
    from nodescope.judgement.zombie_report import Report, assess_recorded
    from nodescope.pictures.zombie_document import report_document
    from nodescope.pictures.zombies import render_report

    if args.trend or args.watch is not None or args.files is not None or args.pages is not None:
        raise UsageError(
            "--at shows what was recorded; --watch, --files, --pages and --trend look at now",
            hint="leave one of them out",
        )
    recording, at_ns = open_moment(args)
    report = assess_recorded(recording, at_ns)
    if not isinstance(report, Report):
        raise UsageError(
            f"no memory cgroups were recorded up to {args.at!r}",
            hint=f"see `{options.status_command(args)}` for what was",
        )
    if args.json:
        options.print_json(report_document(report))
    else:
        print(render_report(report, all_parents=args.parents, width=options.terminal_width()))
    return _EXIT_CODES[report.verdict.level]


def _history(args: argparse.Namespace) -> History | None:
    if not args.trend and args.archive is None:
        return None
    from nodescope.judgement.zombie_history import read_history
    from nodescope.recording.recording import Recording
    from nodescope.recording.window import Window

    now = time.time_ns()
    recording = Recording.open(options.archive_path(args))
    return read_history(recording, Window(now - HOUR_NS, now))


def _watch(
    hierarchy: MemoryHierarchy, duration_ns: int
) -> tuple[Heard, list[Churn], dict[str, int]]:
    from nodescope.judgement.cgroup_churn import conclude, count_unreleased
    from nodescope.judgement.churn_ledger import ChurnLedger, choose_memory
    from nodescope.sources.cgroups.watch import GRACE_NS, listen

    ledger = ChurnLedger(grace_ns=GRACE_NS)
    heard = listen(
        hierarchy.places,
        duration_ns / SECOND_NS,
        lambda events: ledger.take(choose_memory(events, v2=hierarchy.is_v2)),
    )
    makers = conclude(ledger.tell(heard.end_ns + GRACE_NS), heard)
    return heard, makers, count_unreleased(makers)


def _search(report: Report, hierarchy: MemoryHierarchy, folders: list[Path], limit_ns: int) -> None:
    from nodescope.sources.memory_cgroups.pins import find_pinning_files

    report.search = find_pinning_files(
        hierarchy, report.reading.parents, folders, limit_ns / SECOND_NS
    )


def _scan(report: Report, hierarchy: MemoryHierarchy, one_in: int) -> None:
    from nodescope.sources.memory_cgroups.pages import name_pages, scan_pages

    report.pages = name_pages(hierarchy, scan_pages(hierarchy.places, one_in))
    report.pages_one_in = one_in
