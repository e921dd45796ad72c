"""`nodescope freeze`: keep a time range beyond retention."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.cli.moment import describe_extent, parse_time_ns
from nodescope.errors import UsageError
from nodescope.quantities import format_duration
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.archive.retention import Frozen


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "freeze",
        run,
        description="Keep every segment that overlaps a time range, whatever its age and however\n"
        "large the archive, until it is unfrozen. Works while a recorder runs. The range may\n"
        "end in the future; one in the past must hold something recorded.",
        examples=[
            ("nodescope freeze --last 10m --reason 'NIC reset'", "what just happened"),
            ("nodescope freeze --from 2026-05-01T12:00Z --to 2026-05-01T12:10Z", "a range"),
            ("nodescope freeze --list", "what is frozen"),
            ("nodescope freeze --remove 0001", "let retention have it again"),
        ],
    )
    options.add_archive(parser, writes=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--last",
        type=options.duration,
        metavar="TIME",
        help="freeze the last TIME of the recording",
    )
    what.add_argument(
        "--from",
        dest="start",
        metavar="WHEN",
        help=f"start of the range: {options.WHEN_HELP}; see --to",
    )
    what.add_argument("--list", action="store_true", help="list the frozen ranges")
    what.add_argument("--remove", metavar="ID", help="unfreeze the range with this id")
    parser.add_argument("--to", dest="end", metavar="WHEN", help="end of the range (default: now)")
    parser.add_argument("--reason", default="", metavar="TEXT", help="reason, shown by --list")
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Freeze, list or unfreeze."""
    from nodescope.archive.layout import read_archive_info
    from nodescope.archive.retention import freeze, read_frozen, unfreeze

    archive = options.archive_path(args)
    read_archive_info(archive)  # a wrong path is an error, not "nothing frozen"
    if args.end is not None and args.start is None:
        raise UsageError("--to needs --from", hint="see `nodescope freeze --help`")
    if args.list:
        _show(read_frozen(archive), archive, as_json=args.json)
        return 0
    if args.remove is not None:
        unfreeze(archive, args.remove)
        if args.json:
            options.print_json({"unfrozen": args.remove})
        else:
            print(f"unfrozen: {args.remove}")
        return 0
    now_ns = time.time_ns()
    from_ns, to_ns = _range(args, now_ns)
    _show([freeze(archive, from_ns, to_ns, args.reason, now_ns)], archive, as_json=args.json)
    return 0


def _keep_command(args: argparse.Namespace) -> str:
    archive = options.named_archive(args)
    where = [] if archive is None else ["--archive", str(archive)]
    return shlex.join(["nodescope", "freeze", "--from", "now", "--to", "WHEN", *where])


def _range(args: argparse.Namespace, now_ns: int) -> tuple[int, int]:
    """Return the range to freeze; one that can hold nothing is refused."""
    from nodescope.archive.reader import Archive
    from nodescope.recording.recording import Recording
    from nodescope.recording.window import Window

    listing = Archive.open(options.archive_path(args)).listing()
    recording = Recording(listing.segments)
    extent = recording.extent if recording.parts else None
    if args.last is not None:
        if extent is None:
            raise UsageError(
                f"--last names no time: {listing.emptiness}",
                hint=f"`{_keep_command(args)}` keeps what will be recorded",
            )
        return extent.to_ns - args.last, extent.to_ns
    start = parse_time_ns(args.start, extent, now_ns)
    end = now_ns if args.end is None else parse_time_ns(args.end, extent, now_ns)
    empty = start <= end <= now_ns and not recording.overlapping(Window(start, end))
    if empty and not (extent is not None and extent.grows and start >= extent.from_ns):
        raise UsageError(
            f"nothing was recorded from {format_moment(start)} to {format_moment(end)}",
            hint=listing.emptiness if extent is None else describe_extent(extent),
        )
    return start, end


def _show(ranges: list[Frozen], archive: Path, *, as_json: bool) -> None:
    if as_json:
        options.print_json(
            {"archive": str(archive), "frozen": [frozen_to_json(each) for each in ranges]}
        )
    elif not ranges:
        print("nothing is frozen")
    else:
        print("\n".join(render_frozen(ranges)))


def render_frozen(ranges: Sequence[Frozen]) -> list[str]:
    """Return a line of each range, their columns below one another."""
    rows = [
        (
            each.id,
            f"{format_moment(each.from_ns)} to {format_moment(each.to_ns)}",
            format_duration(each.to_ns - each.from_ns),
            each.reason,
        )
        for each in ranges
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]]
        ).rstrip()
        for row in rows
    ]


def frozen_to_json(frozen: Frozen) -> dict[str, object]:
    """One range, times as ISO 8601 and, with `_ns`, as integers."""
    return {
        **asdict(frozen),
        "from": format_moment(frozen.from_ns),
        "to": format_moment(frozen.to_ns),
        "created": format_moment(frozen.created_ns),
    }
