"""`nodescope record`: keep the flight recorder running."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from typing import TYPE_CHECKING, TextIO

from nodescope.archive.memory import use_one_allocator
from nodescope.cli import options
from nodescope.quantities import HOUR_NS, SECOND_NS, format_bytes, format_duration

if TYPE_CHECKING:
    from nodescope.recorder.options import RecorderOptions
    from nodescope.recorder.recorder import Progress

_LOG_EVERY_NS = HOUR_NS  # beside the first segment and the end
_LOG_VERBOSE_NS = 10 * SECOND_NS
_CLEAR = "\x1b[K"  # to the end of the line


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "record",
        run,
        description="Sample every core, read its time, and keep the last hours in an archive.\n"
        "Runs until SIGTERM or SIGINT, which seal the open segment. Without privileges it\n"
        "records what it may; `nodescope doctor` shows what is missing.",
        examples=[
            ("nodescope record", "until stopped, 12 hours or 4 GiB"),
            ("nodescope record --archive /data/rec --duration 30s", "half a minute, for a script"),
            ("nodescope record --cpu 0-5,39 --core-interval 100ms", "some cores, in more detail"),
        ],
    )
    options.add_archive(parser, writes=True)
    parser.add_argument(
        "--duration",
        type=options.duration,
        metavar="TIME",
        help="stop after this long, e.g. 30s (default: run until stopped)",
    )
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument(
        "--frequency",
        type=options.positive,
        default=97,
        metavar="HZ",
        help="samples per second and core (default: 97)",
    )
    sampling.add_argument(
        "--ring-size",
        type=options.size,
        metavar="SIZE",
        help="memory shared with the kernel, per core (default: 1MiB, 512KiB above 16 cores)",
    )
    cpu = sampling.add_argument(
        "--cpu",
        type=options.cpus,
        metavar="LIST",
        help="cores to sample, e.g. 0-5,39 (default: all that are online)",
    )
    options.add_old_spelling(sampling, "--cpus", cpu)
    sampling.add_argument(
        "--core-interval",
        type=options.duration,
        default="1s",
        metavar="TIME",
        help="how often the time of each core is read (default: 1s)",
    )
    node = parser.add_argument_group("the node")
    node.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME",
        help="leave out this observer, e.g. containers; `all` for samples and cores alone; "
        "repeatable (`nodescope doctor` lists them)",
    )
    options.add_places(node)
    archive = parser.add_argument_group("archive")
    archive.add_argument(
        "--segment",
        type=options.duration,
        metavar="TIME",
        help="length of a segment (default: 2m, up to 10m while it holds less than 3 MiB)",
    )
    archive.add_argument(
        "--flush",
        type=options.duration,
        metavar="TIME",
        help="write to disk this often; a power cut loses at most this much (default: 5s, or the "
        "length of a segment if that is shorter)",
    )
    archive.add_argument(
        "--retention-age",
        type=options.duration,
        default="12h",
        metavar="TIME",
        help="remove older segments, unless frozen (default: 12h)",
    )
    archive.add_argument(
        "--retention-size",
        type=options.size,
        default="4GiB",
        metavar="SIZE",
        help="remove the oldest segments above this size; frozen ones do not count (default: 4GiB)",
    )
    budget = parser.add_argument_group("its own cost; over it, the recorder lowers its rate")
    budget.add_argument(
        "--budget-cpu",
        type=options.percent,
        default="1%",
        metavar="PERCENT",
        help="CPU budget: of one core, plus 0.05 %% per further core (default: 1%%)",
    )
    budget.add_argument(
        "--budget-memory",
        type=options.size,
        default="150MB",
        metavar="SIZE",
        help="budget of resident memory (default: 150MB)",
    )
    noise = parser.add_mutually_exclusive_group()
    noise.add_argument("--quiet", action="store_true", help="log only warnings and errors")
    noise.add_argument("--verbose", action="store_true", help="also log routine messages")


def recorder_options(args: argparse.Namespace) -> RecorderOptions:
    """Convert the command line into the recorder's options."""
    from nodescope.recorder.options import FLUSH_NS, RecorderOptions

    return RecorderOptions(
        archive=options.archive_path(args),
        duration_ns=args.duration,
        frequency_hz=args.frequency,
        ring_bytes=args.ring_size,
        cpus=None if args.cpu is None else tuple(args.cpu),
        core_interval_ns=args.core_interval,
        segment_ns=args.segment,
        flush_ns=min(FLUSH_NS, args.segment or FLUSH_NS) if args.flush is None else args.flush,
        retention_age_ns=args.retention_age,
        retention_bytes=args.retention_size,
        budget_cpu_ratio=args.budget_cpu,
        budget_memory_bytes=args.budget_memory,
        places=options.places(args),
        without=tuple(args.without),
    )


def run(args: argparse.Namespace) -> int:
    """Record until the duration is over or a signal comes."""
    gc.disable()  # importing makes much and drops nothing; the recorder collects for itself
    use_one_allocator()
    from nodescope.recorder.session import check, record

    wanted = recorder_options(args)
    check(wanted)
    console = Console(sys.stderr, quiet=args.quiet, verbose=args.verbose)
    length = "until stopped" if args.duration is None else f"for {format_duration(args.duration)}"
    console.say(f"recording to {wanted.archive} {length}")
    progress = console.update if console.shows_progress else None
    record(wanted, report=console.warn, progress=progress, sealed=console.sealed)
    console.finish(f"`{options.status_command(args)}` shows what was recorded")
    return 0


class Console:
    """The recorder's output: a line that changes on a terminal, else log lines."""

    def __init__(self, stream: TextIO, *, quiet: bool = False, verbose: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._live = stream.isatty() and not quiet
        self._verbose = verbose
        self._shown = False  # a line of progress stands there
        self._logged_ns: int | None = None

    @property
    def shows_progress(self) -> bool:
        """Return whether `update` has anywhere to go: computing it costs the recorder."""
        return self._live or self._verbose

    def say(self, message: str) -> None:
        """Something usual."""
        if not self._quiet:
            self.warn(message)

    def warn(self, message: str) -> None:
        """Something a person should know, quiet or not."""
        if self._shown:
            self._stream.write(f"\r{_CLEAR}")
            self._shown = False
        print(f"nodescope: {message}", file=self._stream, flush=True)

    def update(self, progress: Progress) -> None:
        """Show how it goes; a log gets it every ten seconds, and only if verbose."""
        if self._live:
            # Cut before the last column: there some terminals begin a new line.
            line = render_progress(progress, self._columns() - 1)
            self._stream.write(f"\r{line}{_CLEAR}")
            self._stream.flush()
            self._shown = True
        elif self._verbose:
            self._log(progress, _LOG_VERBOSE_NS)

    def sealed(self, progress: Progress) -> None:
        """A segment is complete: a log gets the first, then one line an hour."""
        if not self._live:
            self._log(progress, _LOG_EVERY_NS)

    def finish(self, message: str) -> None:
        """The last line of progress stays, then comes `message`."""
        if self._shown:
            self._stream.write("\n")
            self._shown = False
        self.say(message)

    def _log(self, progress: Progress, every_ns: int) -> None:
        last = self._logged_ns
        if last is None or progress.ended or progress.elapsed_ns - last >= every_ns:
            self._logged_ns = progress.elapsed_ns
            self.say(render_progress(progress))

    def _columns(self) -> int:
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return columns or 80


def render_progress(progress: Progress, width: int | None = None) -> str:
    """One line: how long, how much, at what cost; of a narrow one the end is left out."""
    seconds = progress.elapsed_ns // SECOND_NS
    parts = [
        format_duration(seconds * SECOND_NS) if seconds else "0 s",
        *(["PAUSED: no room"] if progress.paused else []),
        f"{progress.samples:,} samples",
        f"{progress.lost:,} lost",
        f"{format_bytes(progress.written_bytes)} written",
        f"{100 * progress.cpu_ratio:.2f} % of one core",
        f"{format_bytes(progress.rss_bytes)} resident",
        f"{progress.frequency_hz} Hz",
    ]
    line = "  ".join(parts)
    while width is not None and len(line) > width and len(parts) > 1:
        parts.pop()
        line = "  ".join(parts)
    return line if width is None else line[:width]
