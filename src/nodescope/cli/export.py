"""`nodescope export`: a window in other tools' formats, or all of it as a bundle."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nodescope import records
from nodescope.cli import options
from nodescope.cli import window as windows
from nodescope.errors import ArchiveError, UsageError
from nodescope.exchange.export.catalogue import (
    BUNDLE,
    EXPORT_FORMATS,
    ROW_FORMATS,
    ExportedWindow,
    SampleFormat,
    describe_span,
    find_export_format,
)
from nodescope.quantities import SECOND_NS, format_bytes, format_count

if TYPE_CHECKING:
    from nodescope.exchange.export.stacks import ChosenSamples
    from nodescope.pictures.rows import ViewRows

TABLES = tuple(
    table.name
    for table in records.TABLES.values()
    if any(column.name == "time_ns" for column in table.columns)
)
VIEWS = ("samples", "top", "cores", "heatmap", "events")
_BY = ("comm", "cpu", "function", "cgroup", "pid")


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    formats = "\n".join(f"  {each.name:<11} {each.meaning}" for each in EXPORT_FORMATS)
    parser = options.add_command(
        commands,
        "export",
        run,
        description=f"Write a window of the recording to a file. FORMAT is one of\n\n{formats}",
        examples=[
            ("nodescope export bundle --at 12:00:05 --around 60s --output incident.nodescope",
             "to a colleague"),
            ("nodescope export pprof --last 5m --output cpu.pb.gz", "then `go tool pprof -top`"),
            ("nodescope export folded --comm kubelet --output - | flamegraph.pl > k.svg",
             "one process"),
            ("nodescope export csv --view cores --last 10m --output cores.csv", "a spreadsheet"),
            ("nodescope export csv --table memory --where name=pgfault --output -",
             "a counter as it was read"),
        ],
    )  # fmt: skip
    parser.add_argument(
        "format",
        type=_canonical,
        choices=[each.name for each in EXPORT_FORMATS],
        metavar="FORMAT",
        help="see above",
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="file to write; `-` is stdout, except for bundle",
    )
    windows.add_window(parser)
    windows.add_filters(parser)
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument(
        "--view",
        choices=VIEWS,
        default="samples",
        metavar="VIEW",
        help=f"csv and parquet: {', '.join(VIEWS)} (default: samples)",
    )
    rows.add_argument(
        "--table",
        choices=TABLES,
        metavar="TABLE",
        help="csv and parquet: export a table as recorded (docs/archive.md) instead of a view",
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="COLUMN=VALUE",
        help="with --table: only rows with this value in that column; repeatable",
    )
    parser.add_argument(
        "--by",
        choices=_BY,
        default="comm",
        metavar="WHAT",
        help=f"with --view top: {', '.join(_BY)} (default: comm)",
    )
    parser.add_argument(
        "--split",
        choices=("none", "comm", "thread"),
        default="none",
        metavar="WHAT",
        help="speedscope: one profile, or one per comm or thread (default: none)",
    )
    options.add_json(parser)


def _canonical(name: str) -> str:
    found = find_export_format(name)
    return name if found is None else found.name


def run(args: argparse.Namespace) -> int:
    """Export and say what was written."""
    if args.format == BUNDLE.name:
        return _bundle(args)
    if args.where and args.table is None:
        raise UsageError("--where needs --table", hint="views have filters: --cpu, --comm, …")
    view = windows.open_view(args)
    counted = _write(args, view)
    what = "rows" if args.format in {each.name for each in ROW_FORMATS} else "samples"
    if args.output == "-":
        return 0
    size = Path(args.output).stat().st_size
    if args.json:
        options.print_json(
            {
                "output": args.output,
                "format": args.format,
                what: counted,
                "bytes": size,
                **describe_span(view.window.from_ns, view.window.to_ns),
            }
        )
    else:
        print(f"{args.output}: {counted:,} {what}, {format_bytes(size)}")
    return 0


def _bundle(args: argparse.Namespace) -> int:
    from nodescope.archive.bundle_writer import write_bundle
    from nodescope.archive.reader import Archive
    from nodescope.recording.window import TimeExtent

    filtered = next(windows.given_filter(args).words(), None)
    if filtered is not None:
        option = filtered[0].replace("_", "-")
        raise UsageError(
            f"--{option}: a bundle holds everything of its window",
            hint="leave the filter out, and use it when reading the bundle",
        )
    if args.output == "-":
        raise UsageError("a bundle is a file", hint="give --output FILE")
    path = Path(args.output)
    if path.is_dir():
        raise UsageError(f"{path}: a folder", hint="give --output FILE")
    archive = Archive.open(options.archive_path(args))
    listing = archive.listing()
    if not listing.segments:
        status = options.status_command(args)
        raise ArchiveError(archive.root, listing.emptiness, hint=f"see `{status}`")
    window = windows.choose_window(args, TimeExtent(listing.segments), time.time_ns())
    show = _show_progress if sys.stderr.isatty() else lambda done, total: None
    made = write_bundle(archive, path, window.from_ns, window.to_ns, time.time_ns(), show=show)
    for error in made.damaged:
        windows.note(f"left out: {error}")
    if args.json:
        options.print_json({
            "output": str(path), "format": "bundle", "samples": made.samples,
            "segments": made.segments, "cut": made.cut, "bytes": made.bytes,
            "damaged": made.damaged, **describe_span(made.from_ns, made.to_ns),
        })  # fmt: skip
    else:
        print(
            f"{path}: {made.samples:,} samples in {format_count(made.segments, 'segment')}, "
            f"{format_bytes(made.bytes)}; open it with --archive {shlex.quote(str(path))}"
        )
    return 1 if made.damaged else 0


def _show_progress(done: int, total: int) -> None:
    end = "\r\x1b[K" if done == total else f"\r{done} of {total} segments"
    print(end, end="", file=sys.stderr, flush=True)


def _write(args: argparse.Namespace, view: windows.OpenedView) -> int:
    from nodescope.exchange.export import tables

    wanted = find_export_format(args.format)
    with _output(args.output) as file:
        if isinstance(wanted, SampleFormat):
            return wanted.write(_exported(args, view), file)
        rows = _rows(args, view)
        return tables.write_table(rows.batches, rows.schema, file, args.format)


def _exported(args: argparse.Namespace, view: windows.OpenedView) -> ExportedWindow:
    window = view.window
    return ExportedWindow(
        view.node,
        view.filter,
        window.from_ns,
        window.to_ns,
        _parts(args, view),
        view.recording.overlapping(window),
        args.split,
    )


def _parts(args: argparse.Namespace, view: windows.OpenedView) -> Iterator[ChosenSamples]:
    from nodescope.exchange.export.stacks import ChosenSamples

    chosen = windows.build_filter(args)
    return (ChosenSamples(columns, chosen.samples(columns)) for columns in view.parts())


def _rows(args: argparse.Namespace, view: windows.OpenedView) -> ViewRows:
    from nodescope.analysis.cores import derive_shares
    from nodescope.analysis.heatmap import make_heatmap
    from nodescope.analysis.top import rank
    from nodescope.pictures import rows

    window, chosen = view.window, windows.build_filter(args)
    if args.table is not None:
        table = records.TABLES[args.table]
        return rows.table_rows(view.recording, window, table, _where(args.where, table))
    if args.view == "top":
        return rows.top_rows(rank(view.parts(), chosen, args.by), functions=args.by == "function")
    if args.view == "heatmap":
        return rows.heatmap_rows(make_heatmap(view.parts(), chosen, window.from_ns, window.to_ns))
    if args.view == "cores":
        readings = view.recording.core_readings(window)
        return rows.cores_rows(derive_shares(readings, window.from_ns, window.to_ns, SECOND_NS))
    if args.view == "events":
        return rows.event_rows(view.recording.events(window))
    return rows.sample_rows(_parts(args, view))


def _where(texts: Sequence[str], table: records.Table) -> dict[str, str]:
    """Return the values that columns of a table must have."""
    pairs = [text.partition("=") for text in texts]
    names = [column.name for column in table.columns]
    for name, sign, _ in pairs:
        if not sign or name not in names:
            raise UsageError(
                f"--where: no column of {table.name}: {name!r}",
                hint=f"write it like {names[1]}=…; it has {', '.join(names)}",
            )
    return {name: value for name, _, value in pairs}


@contextlib.contextmanager
def _output(target: str) -> Iterator[IO[bytes]]:
    """The file to write, in place only when it is whole."""
    if target == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            yield file
        temporary.replace(path)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise UsageError(
            f"{path}: {error.strerror or error}", hint="give a file in a folder you may write to"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
