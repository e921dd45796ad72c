"""`nodescope record`: keep the flight recorder running."""

from __future__ import annotations

import argparse

from nodescope.cli import options
from nodescope.errors import UsageError


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "record",
        run,
        summary="keep the flight recorder running",
        description="Sample every core, read its time, and keep the last hours in an archive.\n"
        "Runs until SIGTERM or SIGINT, which seal the open segment. Without privileges it\n"
        "records what it may; `nodescope doctor` says what is missing.",
        examples=[
            ("nodescope record", "until stopped, 12 hours or 4 GiB"),
            ("nodescope record --archive /data/rec --duration 30s", "half a minute, for a script"),
            ("nodescope record --cpus 0-5,39 --core-interval 100ms", "some cores, in more detail"),
        ],
    )
    options.add_archive(parser)
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
        default="512KiB",
        metavar="SIZE",
        help="memory shared with the kernel, per core (default: 512KiB)",
    )
    sampling.add_argument(
        "--cpus",
        type=options.cpus,
        metavar="LIST",
        help="cores to sample, e.g. 0-5,39 (default: all that are online)",
    )
    sampling.add_argument(
        "--core-interval",
        type=options.duration,
        default="1s",
        metavar="TIME",
        help="how often the time of each core is read (default: 1s)",
    )
    archive = parser.add_argument_group("archive")
    archive.add_argument(
        "--segment",
        type=options.duration,
        default="2m",
        metavar="TIME",
        help="length of a segment (default: 2m)",
    )
    archive.add_argument(
        "--flush",
        type=options.duration,
        default="5s",
        metavar="TIME",
        help="at most this much is lost to a power cut (default: 5s)",
    )
    archive.add_argument(
        "--retention-age",
        type=options.duration,
        default="12h",
        metavar="TIME",
        help="older segments go, unless frozen (default: 12h)",
    )
    archive.add_argument(
        "--retention-size",
        type=options.size,
        default="4GiB",
        metavar="SIZE",
        help="above it the oldest segments go (default: 4GiB)",
    )
    budget = parser.add_argument_group("its own cost; over it, the recorder lowers its rate")
    budget.add_argument(
        "--budget-cpu",
        type=options.percent,
        default="1%",
        metavar="PERCENT",
        help="of one core, plus 0.05 %% per further core (default: 1%%)",
    )
    budget.add_argument(
        "--budget-memory",
        type=options.size,
        default="150MB",
        metavar="SIZE",
        help="resident memory (default: 150MB)",
    )
    noise = parser.add_mutually_exclusive_group()
    noise.add_argument("--quiet", action="store_true", help="only warnings and errors")
    noise.add_argument("--verbose", action="store_true", help="also what is usual")


def run(args: argparse.Namespace) -> int:
    """Record until the duration is over or a signal comes."""
    # WIRE HERE: build nodescope.recorder.options.RecorderOptions from `args` and run it.
    raise UsageError(
        "recording is not wired up yet", hint="nodescope.recorder is being written right now"
    )
