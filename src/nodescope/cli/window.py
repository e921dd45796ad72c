"""What every view takes: a window of time, filters, `--limit`; and the recording they choose.

Times are read as in `nodescope.cli.times`, and also relative to the recording:
`+60s` from its start, `12:00:05` of its day.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nodescope.cli import options
from nodescope.cli.times import format_moment, parse_moment_ns
from nodescope.errors import ArchiveError, UsageError
from nodescope.quantities import format_cpu_list, format_duration, parse_duration_ns

if TYPE_CHECKING:
    from nodescope.analysis.filter import Filter
    from nodescope.analysis.function_pattern import FunctionPattern
    from nodescope.archive.reader import Segment
    from nodescope.diagnosis.case import Case
    from nodescope.exchange.glance import Glance
    from nodescope.pictures.terminal import Terminal
    from nodescope.recording.sample_columns import SampleColumns
    from nodescope.recording.window import TimeExtent, Window

DEFAULT_AROUND_NS = 5_000_000_000
_PROGRESS_AFTER_S = 2.0
_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d{1,9})?))?(Z?)", re.IGNORECASE)
_SUFFIXES = (".svg", ".png", ".html")
_T = TypeVar("_T")


# -- options ----------------------------------------------------------------


def add_window(parser: argparse.ArgumentParser) -> None:
    """`--archive` and the window: all of the recording, or some of it."""
    options.add_archive(parser)
    parser.add_argument(
        "--from",
        dest="start",
        metavar="WHEN",
        help="start: a wall time, 12:00:05 of the recording's day, or +60s from its start",
    )
    parser.add_argument("--to", dest="end", metavar="WHEN", help="end (default: the recording's)")
    parser.add_argument("--at", metavar="WHEN", help="the time around this moment; see --around")
    parser.add_argument(
        "--around",
        type=options.duration,
        metavar="TIME",
        help="with --at: this much before and after (default: 5s)",
    )
    parser.add_argument(
        "--last", type=options.duration, metavar="TIME", help="the end of the recording, this much"
    )


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Which samples a view is about; all that is given must hold."""
    add_cpu(parser)
    parser.add_argument(
        "--comm",
        action="append",
        default=[],
        metavar="NAME",
        help="only threads of this name, `*` matches anything; may be given again",
    )
    parser.add_argument(
        "--pid",
        action="append",
        default=[],
        type=_pids,
        metavar="LIST",
        help="only these processes, e.g. 812,4021",
    )
    parser.add_argument(
        "--cgroup",
        action="append",
        default=[],
        metavar="TEXT",
        help="only cgroups with this in their path, or of the pod or container called so; "
        "may be given again",
    )
    parser.add_argument(
        "--mode", choices=("kernel", "user"), metavar="MODE", help="only kernel or only user"
    )
    parser.add_argument(
        "--frame", metavar="RE", help="only stacks with a function that matches this"
    )
    parser.add_argument(
        "--no-frame", metavar="RE", help="only stacks without a function that matches this"
    )


def add_cpu(parser: argparse.ArgumentParser) -> None:
    """`--cpu LIST`."""
    parser.add_argument("--cpu", type=options.cpus, metavar="LIST", help="only cores, e.g. 0-5,39")


def add_limit(parser: argparse.ArgumentParser, what: str) -> None:
    """`--limit N`."""
    parser.add_argument("--limit", type=_whole, metavar="N", help=f"{what}; 0 is all")


def add_output(parser: argparse.ArgumentParser) -> None:
    """`--output FILE`."""
    parser.add_argument(
        "--output",
        type=_picture_path,
        metavar="FILE",
        help="write a picture instead, self-contained: .svg, .png or .html",
    )


def _pids(text: str) -> list[int]:
    numbers = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in numbers):
        raise argparse.ArgumentTypeError(f"not process ids: {text!r}; write them like 812,4021")
    return [int(part) for part in numbers]


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"not a whole number: {text!r}; 0 means all")
    return int(text)


def _picture_path(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in _SUFFIXES:
        kinds = ", ".join(_SUFFIXES)
        raise argparse.ArgumentTypeError(f"not a kind of picture: {text!r}; it may end in {kinds}")
    return path


def build_filter(args: argparse.Namespace) -> Filter:
    """The filter that the options ask for."""
    from nodescope.analysis.filter import Filter

    return Filter(
        cpus=None if args.cpu is None else frozenset(args.cpu),
        pids=frozenset(pid for pids in args.pid for pid in pids) if args.pid else None,
        comms=tuple(args.comm),
        cgroups=tuple(args.cgroup),
        kernel=None if args.mode is None else args.mode == "kernel",
        frame=_pattern("--frame", args.frame),
        without_frame=_pattern("--no-frame", args.no_frame),
    )


def describe_filter(args: argparse.Namespace) -> str:
    """The filter in words, for a picture's heading."""
    said = []
    for name in ("cpu", "comm", "pid", "cgroup", "mode", "frame", "no_frame"):
        value = getattr(args, name, None)
        if value:
            if name == "cpu":
                value = format_cpu_list(value)
            elif name == "pid":
                value = ",".join(str(pid) for pids in value for pid in pids)
            elif isinstance(value, list):
                value = " or ".join(value)
            said.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(said)


def _pattern(option: str, text: str | None) -> FunctionPattern | None:
    from nodescope.analysis.function_pattern import parse_function_pattern

    if text is None:
        return None
    try:
        return parse_function_pattern(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}", hint=error.hint) from error


# -- the window ---------------------------------------------------------------


def parse_time_ns(text: str, extent: TimeExtent, now_ns: int) -> int:
    """A moment, also relative to the recording."""
    stripped = text.strip()
    if stripped.startswith("+"):
        return extent.from_ns + parse_duration_ns(stripped[1:])
    of_day = _TIME_OF_DAY.fullmatch(stripped)
    if of_day is None:
        return parse_moment_ns(stripped, now_ns)
    hours, minutes, seconds, zone = of_day.groups()
    written = f"{int(hours):02d}:{minutes}:{seconds or '00'}{zone.upper()}"
    latest = 0
    for day in _days(extent, local=not zone):
        moment_ns = parse_moment_ns(f"{day}T{written}", now_ns)
        if extent.from_ns <= moment_ns < extent.to_ns:
            return moment_ns
        latest = latest or moment_ns
    return latest


def _days(extent: TimeExtent, *, local: bool) -> Iterator[str]:
    """The days of a recording, last first."""
    first, last = (
        datetime.fromtimestamp(ns // 1_000_000_000, UTC) for ns in (extent.from_ns, extent.to_ns)
    )
    if local:
        first, last = first.astimezone(), last.astimezone()
    days = (last.date() - first.date()).days
    for back in range(min(days, 366) + 1):
        yield (last.date() - timedelta(days=back)).isoformat()


def choose_window(
    args: argparse.Namespace, extent: TimeExtent, now_ns: int, since_ns: int | None = None
) -> Window:
    """The window that the options ask for, cut to what was recorded, or from `since_ns` on."""
    from nodescope.recording.window import Window

    first_ns = extent.from_ns if since_ns is None else since_ns
    kinds = [args.at is not None, args.last is not None, bool(args.start or args.end)]
    if sum(kinds) > 1:
        raise UsageError(
            "--at, --last and --from/--to each choose a window", hint="give only one of them"
        )
    if args.around is not None and args.at is None:
        raise UsageError("--around needs --at", hint="as in --at 12:00:05 --around 5s")
    if args.at is not None:
        at_ns = parse_time_ns(args.at, extent, now_ns)
        around_ns = DEFAULT_AROUND_NS if args.around is None else args.around
        asked = Window(at_ns - around_ns, at_ns + around_ns)
    elif args.last is not None:
        asked = Window(extent.to_ns - args.last, extent.to_ns)
    else:
        start_ns = parse_time_ns(args.start, extent, now_ns) if args.start else first_ns
        asked = Window(
            start_ns, parse_time_ns(args.end, extent, now_ns) if args.end else extent.to_ns
        )
        if args.start and args.end and asked.to_ns <= asked.from_ns:
            raise UsageError(
                f"the window ends before it starts: {args.start!r} to {args.end!r}",
                hint="--from is the earlier one",
            )
    window = Window(max(asked.from_ns, first_ns), extent.clip(asked).to_ns)
    if window.to_ns <= window.from_ns:
        covered = f"{format_moment(first_ns)} to {format_moment(extent.to_ns)}"
        until = f" to {_moment(asked.to_ns)}" if asked.to_ns > asked.from_ns else " on"
        raise UsageError(
            f"nothing was recorded from {_moment(asked.from_ns)}{until}",
            hint=f"the recording covers {covered}",
        )
    return window


def _moment(moment_ns: int) -> str:
    try:
        return format_moment(moment_ns)
    except (ValueError, OverflowError):
        return f"{moment_ns} ns"


# -- the recording --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class View:
    """A recording, the window on it, and where to show it."""

    node: str
    segments: list[Segment]
    window: Window
    terminal: Terminal
    filter: str

    def heading(self, what: str, samples: int | None = None) -> str:
        """What is shown, of which node, when, and of what."""
        from nodescope.pictures.text import iso, visible

        said = [f"{what} of {visible(self.node)}", iso(self.window.from_ns)]
        said[1] += f" + {format_duration(self.window.length_ns)}"
        if samples is not None:
            said.append(f"{samples:,} samples")
        return " · ".join([*said, *([visible(self.filter)] if self.filter else [])])

    def parts(self) -> Iterator[SampleColumns]:
        """Samples by segment, with a progress bar if it takes long."""
        from nodescope.recording.window import overlapping, read_parts

        count = len(overlapping(self.segments, self.window))
        return with_progress(read_parts(self.segments, self.window), count)


def open_view(args: argparse.Namespace, *, history: bool = False) -> View:
    """Open the archive and choose the window; with events of the time before it, if asked."""
    import os

    from nodescope.archive.memory import keep_memory
    from nodescope.archive.reader import Archive
    from nodescope.pictures.terminal import detect_terminal
    from nodescope.recording.window import TimeExtent, find_history

    keep_memory()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name may be in any script
    path = options.archive_path(args)
    archive = Archive.open(path)
    listing = archive.listing()
    for error in listing.damaged:
        print(f"nodescope: left out: {error}", file=sys.stderr)
    segments = listing.segments
    if not segments:
        raise ArchiveError(path, "nothing is recorded in it", hint="see `nodescope status`")
    extent = TimeExtent(segments)
    since_ns = find_history(segments).from_ns if history else None
    return View(
        node=str(archive.info.node.get("name") or "node"),
        segments=segments,
        window=choose_window(args, extent, time.time_ns(), since_ns),
        terminal=detect_terminal(sys.stdout, os.environ),
        filter=describe_filter(args),
    )


def open_moment(args: argparse.Namespace) -> tuple[Case, int]:
    """The recording, to be asked for what was known at `--at`."""
    from nodescope.archive.reader import Archive
    from nodescope.diagnosis.case import Case
    from nodescope.recording.window import TimeExtent, Window

    path = options.archive_path(args)
    segments = Archive.open(path).segments()
    if not segments:
        raise ArchiveError(path, "nothing is recorded in it", hint="see `nodescope status`")
    at_ns = parse_time_ns(args.at, TimeExtent(segments), time.time_ns())
    return Case(segments, Window(at_ns, at_ns + 1)), at_ns


def open_glance(args: argparse.Namespace, path: Path) -> tuple[View, Glance]:
    """Look at a capture without importing it, and choose the window."""
    import os

    from nodescope.exchange.glance import read_glance
    from nodescope.pictures.terminal import detect_terminal
    from nodescope.recording.window import TimeExtent

    glance = read_glance(path)
    note(glance.stopped)
    window = choose_window(args, TimeExtent([glance]), time.time_ns())
    terminal = detect_terminal(sys.stdout, os.environ)
    return View(glance.node or "node", [], window, terminal, describe_filter(args)), glance


def with_progress(parts: Iterable[_T], count: int) -> Iterator[_T]:
    """Pass on; on a terminal, from the second second on, say how far it is."""
    started = time.monotonic()
    drawn = False
    for done, part in enumerate(parts):
        if sys.stderr.isatty() and time.monotonic() - started > _PROGRESS_AFTER_S:
            drawn = True
            filled = 30 * done // max(count, 1)
            text = f"\r{'━' * filled}{'╌' * (30 - filled)} {done} of {count} segments"
            print(text, end="", file=sys.stderr, flush=True)
        yield part
    if drawn:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# -- printing -------------------------------------------------------------------


def print_document(document: Any) -> None:
    """One line of JSON, in ASCII: no name in it can reach a terminal as anything but text."""
    sys.stdout.write(json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n")


def note(text: str | None) -> None:
    """What a reader must know about an answer, beside it."""
    if text:
        print(f"nodescope: {text}", file=sys.stderr)


def write_picture(path: Path, content: bytes) -> None:
    """Write a file and say so."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", hint="give a file in a folder you may write to"
        ) from error
    print(f"{path}: {len(content):,} bytes")
