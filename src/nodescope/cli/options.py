"""Parts that commands share: the parser, `--archive`, `--json`, and typed quantities."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar

from nodescope.errors import UsageError
from nodescope.quantities import parse_cpu_list, parse_duration_ns, parse_size_bytes

if TYPE_CHECKING:
    from nodescope.records.view import View
    from nodescope.sources.places import Places

DEFAULT_ARCHIVE = Path("/var/lib/nodescope")
_T = TypeVar("_T")


class Parser(argparse.ArgumentParser):
    """Raises what it has to say, so that every error is shown in one way."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see `{self.prog} --help`")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def add_command(
    commands: Commands,
    name: str,
    run: Callable[[argparse.Namespace], int],
    *,
    description: str,
    examples: Sequence[tuple[str, str]],
) -> Parser:
    """Add a command; its help ends with `examples` of (command line, what it does)."""
    width = max(len(line) for line, _ in examples)
    lines = [f"  {line:<{width}}  {meaning}" for line, meaning in examples]
    parser = commands.add_parser(
        name,
        description=description,
        epilog="examples:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_archive(parser: argparse.ArgumentParser, *, writes: bool = False) -> None:
    """`--archive PATH`; a command that writes takes no bundle."""
    parser.add_argument(
        "--archive",
        type=Path,
        metavar="PATH",
        help=f"archive folder{'' if writes else ', or a bundle to read'} "
        f"(default: $NODESCOPE_ARCHIVE, else {DEFAULT_ARCHIVE})",
    )


# How every option that takes a WHEN is read: `nodescope.cli.moment`.
WHEN_HELP = (
    "a wall time (UTC unless a zone is given), 12:00:05 of the recording's day, "
    "+60s from its start, '5m ago' or @SECONDS since 1970"
)


def add_old_spelling(parser: argparse._ActionsContainer, old: str, now: argparse.Action) -> None:
    """Accept an option's former name as well, without showing it in the help."""
    parser.add_argument(
        old,
        dest=now.dest,
        type=now.type or str,
        choices=now.choices,
        default=argparse.SUPPRESS,
        metavar=now.metavar,
        help=argparse.SUPPRESS,
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def add_places(parser: argparse._ActionsContainer, *, root: bool = False) -> None:
    """`--systemd-bus` and `--journal`, for a systemd that is not this machine's own."""
    if root:
        parser.add_argument(
            "--root",
            type=Path,
            metavar="DIR",
            help="read the system mounted here instead of this one",
        )
    parser.add_argument(
        "--systemd-bus",
        metavar="ADDRESS",
        help="D-Bus address of the systemd to ask, e.g. unix:path=/host/run/dbus/"
        "system_bus_socket (default: $NODESCOPE_SYSTEMD_BUS, else the system's)",
    )
    parser.add_argument(
        "--journal",
        type=Path,
        metavar="DIR",
        help="folder with the journal's files (default: $NODESCOPE_JOURNAL, else /var/log/journal "
        "and /run/log/journal)",
    )


def places(args: argparse.Namespace) -> Places:
    """Where the node's files lie, in this order: option, environment, default."""
    from nodescope.sources.places import Places

    journal: Path | None = args.journal
    if journal is None and os.environ.get("NODESCOPE_JOURNAL"):
        journal = Path(os.environ["NODESCOPE_JOURNAL"])
    return Places(
        root=getattr(args, "root", None) or Path("/"),
        systemd_bus=args.systemd_bus or os.environ.get("NODESCOPE_SYSTEMD_BUS") or None,
        journal=journal,
        ray=os.environ.get("RAY_ADDRESS") or None,
    )


def archive_path(args: argparse.Namespace) -> Path:
    """Where the archive is, in this order: option, environment, default."""
    chosen: Path | None = args.archive
    return chosen or Path(os.environ.get("NODESCOPE_ARCHIVE") or DEFAULT_ARCHIVE)


def named_archive(args: argparse.Namespace) -> Path | None:
    """Return the archive as commands have to name it; None where all of them read it anyway."""
    path = archive_path(args).absolute()
    elsewhere = os.environ.get("NODESCOPE_ARCHIVE") not in (None, "", str(DEFAULT_ARCHIVE))
    return path if elsewhere or path != DEFAULT_ARCHIVE else None


def command_of(view: View, args: argparse.Namespace) -> str:
    """Return the command that shows a view of the archive these options name."""
    from nodescope.records.view_forms import render_command

    return render_command(view, named_archive(args))


def status_command(args: argparse.Namespace) -> str:
    """Return the command that shows what is recorded in the archive these options name."""
    from nodescope.records.view import View

    return command_of(View("status"), args)


def terminal_width() -> int:
    """Return how wide the terminal is; 0 if stdout is none: other programs want whole lines."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def print_json(document: Any) -> None:
    """One JSON document to stdout."""
    json.dump(document, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def option(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """A parser of quantities as argparse wants it: so that the message names the option."""

    def convert(text: str) -> _T:
        try:
            return parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(f"{error}; {error.hint}") from error

    return convert


def _parse_some_cpus(text: str) -> list[int]:
    cpus = parse_cpu_list(text)
    if not cpus:
        raise UsageError("no CPU named", hint="write it like 0-5,39")
    return cpus


def _parse_positive_duration_ns(text: str) -> int:
    nanoseconds = parse_duration_ns(text)
    if nanoseconds <= 0:
        raise UsageError(f"must be longer than zero: {text!r}", hint="write it like 30s or 100ms")
    return nanoseconds


def _parse_percent(text: str) -> float:
    """`1%`, `0.5 %`, as a ratio."""
    number, sign, rest = text.strip().partition("%")
    try:
        ratio = float(number) / 100
    except ValueError:
        ratio = -1.0
    if not sign or rest or not 0 < ratio < float("inf"):
        raise UsageError(f"not a percentage: {text!r}", hint="write it like 1% or 0.5%")
    return ratio


def _parse_positive_integer(text: str) -> int:
    if not text.strip().isdecimal() or int(text) == 0:
        raise UsageError(f"not a whole number above zero: {text!r}", hint="write it like 97")
    return int(text)


duration = option(_parse_positive_duration_ns)
size = option(parse_size_bytes)
cpus = option(_parse_some_cpus)
percent = option(_parse_percent)
positive = option(_parse_positive_integer)
