"""Options of every view: a window of time, filters, `--limit`; and the recording they choose."""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from nodescope.cli import options
from nodescope.cli.moment import describe_extent, parse_time_ns
from nodescope.errors import ArchiveError, UsageError
from nodescope.quantities import format_duration
from nodescope.records.sample_filter import (
    FILTER_OPTIONS,
    FilterOption,
    SampleFilter,
    check_filter,
    parse_filter,
)
from nodescope.records.view import Last, Moment, Span, When
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.analysis.filter import Filter
    from nodescope.archive.reader import Archive
    from nodescope.exchange.glance import Glance
    from nodescope.pictures.terminal import Terminal
    from nodescope.recording.recording import Recording
    from nodescope.recording.sample_columns import SampleColumns
    from nodescope.recording.window import TimeExtent, Window

_PROGRESS_AFTER_S = 2.0
_T = TypeVar("_T")


# -- options ----------------------------------------------------------------


def add_window(parser: argparse.ArgumentParser, around: str = "5s") -> None:
    """`--archive` and the window: all of the recording, or some of it."""
    options.add_archive(parser)
    parser.add_argument(
        "--from",
        dest="start",
        metavar="WHEN",
        help=f"start: {options.WHEN_HELP}",
    )
    parser.add_argument("--to", dest="end", metavar="WHEN", help="end (default: the recording's)")
    parser.add_argument(
        "--at",
        metavar="WHEN",
        help="show the time around this moment (as --from); see --around",
    )
    parser.add_argument(
        "--around",
        type=options.duration,
        metavar="TIME",
        help=f"with --at: this much before and after (default: {around})",
    )
    parser.add_argument(
        "--last", type=options.duration, metavar="TIME", help="the last TIME of the recording"
    )


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Which samples a view is about; all that is given must hold."""
    for option in FILTER_OPTIONS:
        _add_filter(parser, option)


def add_cpu(parser: argparse.ArgumentParser) -> None:
    """`--cpu LIST`."""
    _add_filter(parser, next(each for each in FILTER_OPTIONS if each.name == "cpu"))


def _add_filter(parser: argparse.ArgumentParser, option: FilterOption) -> None:
    again = "; may be given again" if option.repeatable else ""
    parser.add_argument(
        f"--{option.name.replace('_', '-')}",
        action="append" if option.repeatable else "store",
        type=options.option(partial(check_filter, option.name)),
        metavar=option.placeholder,
        help=f"{option.help}{again}",
    )


def add_limit(parser: argparse.ArgumentParser, what: str) -> None:
    """`--limit N`."""
    parser.add_argument("--limit", type=whole_number, metavar="N", help=f"{what}; 0 is all")


def add_output(parser: argparse.ArgumentParser) -> None:
    """`--output FILE`."""
    parser.add_argument(
        "--output",
        type=_picture_path,
        metavar="FILE",
        help="write a picture instead, self-contained: .svg, .png or .html",
    )


def whole_number(text: str) -> int:
    """Return a number of things to show; 0 means all."""
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"not a whole number: {text!r}; 0 means all")
    return int(text)


def _picture_path(text: str) -> Path:
    from nodescope.pictures.file_formats import SUFFIXES

    path = Path(text)
    if path.suffix.lower() not in SUFFIXES:
        kinds = ", ".join(SUFFIXES)
        raise argparse.ArgumentTypeError(f"not a kind of picture: {text!r}; it may end in {kinds}")
    return path


def given_filter(args: argparse.Namespace) -> SampleFilter:
    """Return which samples the options ask for."""
    words: dict[str, list[str]] = {}
    for option in FILTER_OPTIONS:
        given = getattr(args, option.name, None)
        if given is not None:
            words[option.name] = given if isinstance(given, list) else [given]
    return parse_filter(words)


def build_filter(args: argparse.Namespace) -> Filter:
    """Return the filter that the options ask for, ready to be applied."""
    from nodescope.analysis.filter import compile_filter

    return compile_filter(given_filter(args))


def describe_filter(args: argparse.Namespace) -> str:
    """Return the filter in words, for a picture's heading."""
    said: dict[str, list[str]] = {}
    for name, text in given_filter(args).words():
        said.setdefault(name, []).append(text)
    return ", ".join(f"{name.replace('_', ' ')} {' or '.join(texts)}"
                     for name, texts in said.items())  # fmt: skip


# -- the window ---------------------------------------------------------------


def given_when(args: argparse.Namespace, extent: TimeExtent, now_ns: int) -> When | None:
    """Return the time that the options ask for; None for the whole recording."""
    kinds = [args.at is not None, args.last is not None, bool(args.start or args.end)]
    if sum(kinds) > 1:
        raise UsageError(
            "--at, --last and --from/--to each choose a window", hint="give only one of them"
        )
    if args.around is not None and args.at is None:
        raise UsageError("--around needs --at", hint="as in --at 12:00:05 --around 5s")
    if args.at is not None:
        return Moment(parse_time_ns(args.at, extent, now_ns), args.around)
    if args.last is not None:
        return Last(args.last)
    ends = [parse_time_ns(text, extent, now_ns) if text else None
            for text in (args.start, args.end)]  # fmt: skip
    return Span(*ends) if any(kinds) else None


def choose_window(
    args: argparse.Namespace, extent: TimeExtent, now_ns: int, since_ns: int | None = None
) -> Window:
    """Return the window that the options ask for, cut to what was recorded, or from `since_ns`."""
    from nodescope.recording.window import Window, window_of

    asked = window_of(given_when(args, extent, now_ns), extent, since_ns)
    first_ns = extent.from_ns if since_ns is None else since_ns
    window = Window(max(asked.from_ns, first_ns), extent.clip(asked).to_ns)
    if window.to_ns <= window.from_ns:
        until = f" to {_moment(asked.to_ns)}" if asked.to_ns > asked.from_ns else " on"
        raise UsageError(
            f"nothing was recorded from {_moment(asked.from_ns)}{until}",
            hint=describe_extent(extent, since_ns),
        )
    return window


def _moment(moment_ns: int) -> str:
    try:
        return format_moment(moment_ns)
    except (ValueError, OverflowError):
        return f"{moment_ns} ns"


# -- the recording --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenedView:
    """A recording, the window on it, and where to show it."""

    recording: Recording
    window: Window
    terminal: Terminal
    filter: str

    @property
    def node(self) -> str:
        """Return the name of the node."""
        return self.recording.node_name

    def heading(self, what: str, samples: int | None = None) -> str:
        """Return the heading: what is shown, of which node, when, and by which filter."""
        from nodescope.pictures.text import visible
        from nodescope.wall_time import format_moment

        said = [f"{what} of {visible(self.node)}", format_moment(self.window.from_ns)]
        said[1] += f" + {format_duration(self.window.length_ns)}"
        if samples is not None:
            said.append(f"{samples:,} samples")
        return " · ".join([*said, *([visible(self.filter)] if self.filter else [])])

    def explain_no_samples(self, args: argparse.Namespace) -> str:
        """Return why no sample is shown."""
        from nodescope.analysis.no_samples import explain_no_samples

        return explain_no_samples(self.recording, self.window, given_filter(args))

    def parts(self, roll_up: str | None = None) -> Iterator[SampleColumns]:
        """Read samples by segment or, of a roll-up, by hour; a progress bar shows if it is slow."""
        count = len(self.recording.overlapping(self.window))
        return with_progress(self.recording.samples(self.window, roll_up), count)


def open_view(
    args: argparse.Namespace, *, history: bool = False, near_ns: int | None = None
) -> OpenedView:
    """Open the archive and choose the window; with events of the time before it, if asked.

    A view that reads nothing further from the window than `near_ns` gets those segments
    only, and the files of others are not looked at.
    """
    import os

    from nodescope.archive.memory import keep_memory
    from nodescope.archive.reader import Archive
    from nodescope.pictures.terminal import detect_terminal

    keep_memory()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name may be in any script
    path = options.archive_path(args)
    archive = Archive.open(path)
    if near_ns is None:
        opened = _open_whole(args, archive, history=history)
    else:
        opened = _open_near(args, archive, near_ns)
    if opened is None:
        status = options.status_command(args)
        raise ArchiveError(path, archive.listing().emptiness, hint=f"see `{status}`")
    recording, window = opened
    terminal = detect_terminal(sys.stdout, os.environ)
    return OpenedView(recording, window, terminal, describe_filter(args))


def _open_whole(
    args: argparse.Namespace, archive: Archive, *, history: bool
) -> tuple[Recording, Window] | None:
    from nodescope.recording.recording import Recording

    listing = archive.listing()
    for error in listing.damaged:
        _leave_out(error)
    if not listing.segments:
        return None
    recording = Recording(listing.segments, archive.info.node, listing.lost, archive.hours)
    recording.check_cores(given_filter(args).cpus)
    since_ns = _first_event_ns(recording, archive) if history else None
    return recording, choose_window(args, recording.extent, time.time_ns(), since_ns)


def _first_event_ns(recording: Recording, archive: Archive) -> int:
    """Return since when there are events: what logs remembered, or marks that still wait."""
    from nodescope.recording.pending_marks import read_waiting

    waiting = (event.time_ns for event in read_waiting(archive.root))
    return min([recording.history.from_ns, *waiting])


def _open_near(
    args: argparse.Namespace, archive: Archive, near_ns: int
) -> tuple[Recording, Window] | None:
    from nodescope.recording.near_window import find_near
    from nodescope.recording.recording import Recording

    cpus = given_filter(args).cpus
    now_ns = time.time_ns()
    segments, window = find_near(
        archive, lambda extent: choose_window(args, extent, now_ns), near_ns, _leave_out
    )
    if window is None:
        return None
    recording = Recording(segments, archive.info.node, hours=archive.hours)
    if not recording.has_cores(cpus):  # it may have been recorded at another time
        Recording(archive.segments()).check_cores(cpus)
    return recording, window


def _leave_out(error: ArchiveError) -> None:
    print(f"nodescope: left out: {error}", file=sys.stderr)


def open_glance(args: argparse.Namespace, path: Path) -> tuple[OpenedView, Glance]:
    """Look at a capture without importing it, and choose the window."""
    import os

    from nodescope.exchange.glance import read_glance
    from nodescope.pictures.terminal import detect_terminal
    from nodescope.recording.recording import Recording
    from nodescope.recording.window import TimeExtent

    glance = read_glance(path)
    note(glance.stopped)
    window = choose_window(args, TimeExtent([glance]), time.time_ns())
    terminal = detect_terminal(sys.stdout, os.environ)
    recording = Recording([], {"name": glance.node})
    return OpenedView(recording, window, terminal, describe_filter(args)), glance


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
    """Print a remark about an answer beside it."""
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
