"""`nodescope import`: bring in what other tools captured."""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nodescope.cli import options
from nodescope.quantities import SECOND_NS, format_bytes, format_duration
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.errors import SourceError
    from nodescope.exchange.import_files import Found
    from nodescope.ingest.sink import ImportReport

_BAR = 24
_NAMED = 8  # files left that are named
_SHOW_EVERY_S = 0.2


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "import",
        run,
        description="Import captures into an archive: perf.data, and text that perf, mpstat, the\n"
        "kernel and journald wrote. Files, and the captures in folders, become one timeline,\n"
        "each placed by its own wall clock. A file that is already there is not imported again;\n"
        "intact parts of damaged files are imported, and the exit code is 1.",
        examples=[
            ("nodescope import perf.data --archive incident", "one capture"),
            ("nodescope import captures/ --archive incident", "a folder of rolling captures"),
            ("nodescope import perf.data --archive incident --json", "its quality, for a script"),
        ],
    )
    parser.add_argument("file", nargs="+", type=Path, metavar="FILE", help="a capture, or a folder")
    options.add_archive(parser, writes=True)
    parser.add_argument(
        "--node",
        type=_node_name,
        metavar="NAME",
        help="node of the files that do not name theirs; needed to add such files to the "
        "recording of a node",
    )
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Import, and say of what quality it is."""
    from nodescope.exchange.import_files import import_files
    from nodescope.recorder import footprint

    archive = options.archive_path(args)
    bar = Bar(sys.stderr)
    footprint.keep_flat()  # a tenth of the CPU time of a large import
    try:
        imported = import_files(args.file, archive, node_name=args.node, show=bar.show)
    finally:
        gc.enable()
        bar.clear()
    if args.json:
        options.print_json(
            {
                "archive": str(archive),
                "imports": [report_to_json(report) for report in imported.reports],
                "failures": [failure_to_json(error) for error in imported.failures],
                "skipped": [str(path) for path in imported.skipped],
            }
        )
    else:
        for report in imported.reports:
            print(render_report(report))
        if imported.skipped:
            print(_render_skipped(imported.skipped))
    for error in imported.failures:
        print(f"nodescope: not imported: {error}", file=sys.stderr)
    for report in imported.reports:
        if report.stopped_at is not None:
            print(f"nodescope: {report.path}: {_render_stop(report)}", file=sys.stderr)
    return 0 if imported.is_whole else 1


def _render_skipped(paths: Sequence[Path]) -> str:
    """Say which files of a folder were left: no captures, or the same lines once more."""
    named = ", ".join(str(path) for path in paths[:_NAMED])
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return (
        f"{len(paths)} other files in the folder were not imported (no captures, or logs with the "
        f"same lines as those that were): {named}{more}"
    )


def _node_name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("a node's name is not empty")
    return text.strip()


class Bar:
    """Progress on a terminal: bytes, rate, time left. Nothing elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._line = ""
        self._started = self._shown_at = time.monotonic()
        self._path: Path | None = None

    def show(self, found: Found, done: int) -> None:
        """Show how far a file is."""
        now = time.monotonic()
        if found.path != self._path:
            self._path, self._started = found.path, now
        if not self._live or (now - self._shown_at < _SHOW_EVERY_S and done < found.bytes):
            return
        self._shown_at = now
        self.clear()
        self._line = render_progress(found.path.name, done, found.bytes, now - self._started)
        self._stream.write(self._line)
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._line:
            self._stream.write("\r" + " " * len(self._line) + "\r")
            self._line = ""


def render_progress(name: str, done: int, total: int, elapsed_s: float) -> str:
    """One line: a bar, bytes, rate, time left."""
    share = min(1.0, done / total) if total else 1.0
    bar = ("█" * round(share * _BAR)).ljust(_BAR, "░")
    rate = done / elapsed_s if elapsed_s > 0 else 0.0
    left = f"{format_duration(round((total - done) / rate) * SECOND_NS)} left" if rate else ""
    size = f"{format_bytes(done)} of {format_bytes(total)}"
    return f"{name}  {bar} {share:4.0%}  {size}  {format_bytes(int(rate))}/s  {left}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


def render_report(report: ImportReport) -> str:
    """Return the report of an import: its contents and their quality."""
    lines = [f"{report.path}: {_render_origin(report)}"]
    tables = {name: count for name, count in report.rows.items() if name != "samples"}
    if report.samples:
        user = report.frames - report.kernel_frames
        lines += [
            (
                f"  samples     {report.samples:,}, {report.lost:,} lost, "
                f"{report.throttled:,} times throttled{_idle(report)}"
            ),
            (
                f"  unresolved  {_share(report.unresolved_kernel, report.kernel_frames)} of kernel "
                f"frames, {_share(report.unresolved_user, user)} of user frames"
            ),
            f"  stacks      {_share(report.truncated_stacks, report.samples)} truncated",
            (
                f"  order       {report.out_of_order:,} samples out of order, "
                f"{report.malformed:,} records malformed"
            ),
        ]
    if tables:
        lines.append("  rows        " + ", ".join(f"{n:,} {name}" for name, n in tables.items()))
    lines.append(f"  clock       from {report.clock_source or 'nowhere'}")
    lines += [f"  note        {note}" for note in report.notes]
    if report.stopped_at is not None:
        lines.append(f"  incomplete  {_render_stop(report)}")
    return "\n".join(lines)


def _idle(report: ImportReport) -> str:
    """Return the share of the idle task; most captures leave it out, and then it is not known."""
    return f", {_share(report.idle, report.samples)} idle" if report.idle else ""


def _render_origin(report: ImportReport) -> str:
    text = f"{report.format} of {report.node or 'an unnamed node'}"
    if report.wall_from_ns is not None and report.wall_to_ns is not None:
        length = format_duration(report.wall_to_ns - report.wall_from_ns)
        text += f", {length} from {format_moment(report.wall_from_ns)}"
    return text + (" (already imported: nothing changed)" if report.already_imported else "")


def _render_stop(report: ImportReport) -> str:
    return f"read up to byte {report.stopped_at}: {report.stopped_why}"


def report_to_json(report: ImportReport) -> dict[str, object]:
    """All that is known; times as integers and as ISO 8601."""
    user = report.frames - report.kernel_frames
    content: dict[str, object] = {**asdict(report), "samples": report.samples}
    for name, moment in (("from", report.wall_from_ns), ("to", report.wall_to_ns)):
        content[name] = None if moment is None else format_moment(moment)
    content["unresolved_kernel_ratio"] = _ratio(report.unresolved_kernel, report.kernel_frames)
    content["unresolved_user_ratio"] = _ratio(report.unresolved_user, user)
    content["truncated_ratio"] = _ratio(report.truncated_stacks, report.samples)
    content["idle_ratio"] = _ratio(report.idle, report.samples) if report.idle else None
    return content


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def failure_to_json(error: SourceError) -> dict[str, object]:
    """Return a file that could not be imported, and why."""
    return {"path": error.path, "reason": error.reason}
