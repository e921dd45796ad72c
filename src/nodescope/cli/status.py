"""`nodescope status`: what an archive holds, what is missing, and what it costs."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodescope.archive.layout import ROOM_BYTES
from nodescope.cli import options
from nodescope.cli.freeze import frozen_to_json, render_frozen
from nodescope.quantities import format_bytes, format_count, format_duration
from nodescope.records.recorder_tables import Gap
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.archive.source_costs import SourceCost
    from nodescope.archive.status import Summary

_SHOWN_GAPS = 10


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "status",
        run,
        description="Show which node and time an archive holds, its tables, bytes per sample,\n"
        "gaps with their reasons, what is frozen, what the recorder and each observer of the node\n"
        "cost, and whether one is writing now. Exits 1 if a segment is damaged: if a file is\n"
        "missing or has another length, and of a bundle also if any byte of it has changed.",
        examples=[
            ("nodescope status", "the node's own archive"),
            ("nodescope status --archive /data/rec --json", "for scripts"),
        ],
    )
    options.add_archive(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Summarise the archive and print it."""
    from nodescope.archive.reader import Archive
    from nodescope.archive.status import summarise
    from nodescope.recording.recording import Recording

    path = options.archive_path(args)
    archive = Archive.open(path)
    summary = summarise(archive)
    if archive.bundle is not None:
        summary = replace(summary, damaged=(*summary.damaged, *archive.bundle.find_changed()))
    estimated = Recording(archive.segments()).estimated_times if summary.imported else []
    if args.json:
        options.print_json({**summary_to_json(path, summary), "estimated_times": estimated})
    else:
        print(render_summary(path, summary, time.time_ns(), estimated))
    return 1 if summary.damaged else 0


def summary_to_json(path: Path, summary: Summary) -> dict[str, object]:
    """The document of `--json`: times as ISO 8601 and, with `_ns`, as integers."""
    return {
        "archive": str(path),
        "format": summary.format,
        "node": summary.node.get("name"),
        "node_facts": summary.node,
        "from": _moment(summary.from_ns),
        "to": _moment(summary.to_ns),
        "from_ns": summary.from_ns,
        "to_ns": summary.to_ns,
        "samples": summary.samples,
        "lost": summary.lost,
        "folded": summary.folded,
        "bytes": summary.bytes,
        "bytes_per_sample": summary.bytes_per_sample,
        "segments": summary.segments,
        "tables": {name: extent._asdict() for name, extent in summary.tables.items()},
        "sources": [asdict(cost) for cost in summary.sources],
        "gaps": [_gap_to_json(gap) for gap in summary.gaps],
        "frozen": [frozen_to_json(frozen) for frozen in summary.frozen],
        "frozen_bytes": summary.frozen_bytes,
        "retention_bytes": summary.retention_bytes,
        "recorder": asdict(summary.recorder),
        "recording": None if summary.recording is None else asdict(summary.recording),
        "damaged": [str(error) for error in summary.damaged],
    }


def render_summary(path: Path, summary: Summary, now_ns: int, estimated: Sequence[str] = ()) -> str:
    """Return the summary of an archive, the most important first."""
    segments = format_count(summary.segments, "segment")
    lines = [
        f"node       {_render_node(summary.node)}",
        f"archive    {path}, {format_bytes(summary.bytes)} in {segments}",
        f"recording  {_render_recording(summary, now_ns)}",
        f"range      {_render_range(summary)}",
        *(f"times      {each}" for each in estimated),
        f"samples    {_render_samples(summary)}",
        f"cost       {_render_cost(summary)}",
    ]
    if summary.tables:
        lines += ["", f"{'table':<16}{'rows':>14}{'size':>12}"]
        lines += [
            f"{name:<16}{extent.rows:>14,}{format_bytes(extent.bytes):>12}"
            for name, extent in summary.tables.items()
        ]
    if summary.sources:
        lines += ["", *_render_sources(summary.sources)]
    if summary.segments or not summary.damaged:
        lines += ["", *_render_gaps(summary)]
    if summary.frozen:
        lines += ["", f"frozen, kept beyond retention: {_render_frozen_size(summary, path)}"]
        lines += [f"  {line}" for line in render_frozen(summary.frozen)]
    if summary.damaged:
        lines += ["", "damaged:"]
        lines += [f"  {error}" for error in summary.damaged]
    return "\n".join(lines)


def _render_node(facts: Mapping[str, object]) -> str:
    """Return the name of the node and what is known of the machine."""
    cpus, memory, kernel = (facts.get(name) for name in ("cpus", "memory_bytes", "kernel"))
    machine = [f"{cpus} cores"] if isinstance(cpus, int) else []
    machine += [f"{format_bytes(memory)} memory"] if isinstance(memory, int) else []
    machine += [f"Linux {kernel}"] if kernel else []
    name = str(facts.get("name") or "not known")
    return f"{name} ({', '.join(machine)})" if machine else name


def _render_frozen_size(summary: Summary, path: Path) -> str:
    size, limit = summary.frozen_bytes, summary.retention_bytes
    if limit is None or size <= limit:
        return format_bytes(size)
    return (
        f"{format_bytes(size)}, OVER the {format_bytes(limit)} of --retention-size "
        f"(`{_unfreeze(summary.frozen[0].id, path)}` lets the first go)"
    )


def _unfreeze(range_id: str, path: Path) -> str:
    words = ["nodescope", "freeze", "--remove", range_id, "--archive", str(path.absolute())]
    return shlex.join(words)


def _render_recording(summary: Summary, now_ns: int) -> str:
    if summary.recording is None:
        return "no: no recorder writes to this archive now"
    who = f"yes, pid {summary.recording.pid} on {summary.recording.host}"
    if summary.to_ns is None:
        return f"{who}; nothing flushed yet"
    return f"{who}; last flush {format_duration(max(now_ns - summary.to_ns, 0))} ago"


def _render_range(summary: Summary) -> str:
    if summary.from_ns is None or summary.to_ns is None:
        if summary.damaged:
            return "not known: nothing that was recorded can be read"
        if summary.free_bytes is not None and summary.free_bytes < ROOM_BYTES:
            free = format_bytes(summary.free_bytes)
            return f"nothing is recorded: the device has only {free} free"
        return "nothing is recorded yet"
    length = format_duration(summary.to_ns - summary.from_ns)
    return f"{format_moment(summary.from_ns)} to {format_moment(summary.to_ns)} ({length})"


def _render_samples(summary: Summary) -> str:
    text = f"{summary.samples:,}, {summary.lost:,} lost"
    if summary.folded:
        share = 100 * summary.folded / max(1, summary.samples)
        text += f", {summary.folded:,} with a folded stack ({share:.2f} %)"
    if summary.bytes_per_sample is not None:
        text += f", {summary.bytes_per_sample:.2f} bytes per sample, everything included"
    return text


def _render_cost(summary: Summary) -> str:
    cost = summary.recorder
    known = [] if cost.cpu_ratio is None else [f"{100 * cost.cpu_ratio:.2f} % of one core"]
    if cost.rss_bytes is not None:
        known.append(f"{format_bytes(cost.rss_bytes)} resident")
    elif summary.imported:
        known.append("not known: imported")
    else:
        known.append("not known: no recorder has written it yet")
    if cost.frequency_hz is not None:
        known.append(f"{cost.frequency_hz} Hz" if cost.frequency_hz else "nothing sampled")
    if cost.late_max_ns:
        known.append(f"late by {format_duration(cost.late_max_ns)} at worst")
    return ", ".join(known)


def _render_sources(sources: tuple[SourceCost, ...]) -> list[str]:
    lines = [f"{'observer':<16}{'of one core':>14}{'every':>12}{'slowest':>12}{'failed':>14}"]
    for cost in sources:
        failed = f"{cost.failures:,} of {cost.reads:,}" if cost.failures else "-"
        every, slowest = format_duration(cost.interval_ns), format_duration(cost.slowest_ns)
        share = f"{100 * cost.cpu_ratio:.3f} %"
        lines.append(f"{cost.source:<16}{share:>14}{every:>12}{slowest:>12}{failed:>14}")
    return lines


def _render_gaps(summary: Summary) -> list[str]:
    gaps = summary.gaps
    if not gaps:
        return ["no gaps"] if summary.segments else []
    lines = [f"{format_count(len(gaps), 'gap')} (what was not recorded, and why):"]
    for gap in gaps[-_SHOWN_GAPS:]:
        where = "" if gap.cpu is None else f" on core {gap.cpu}"
        lost = "" if gap.lost is None else f", {format_count(gap.lost, 'record')}"
        length = format_duration(max(gap.to_ns - gap.from_ns, 0))
        lines.append(
            f"  {format_moment(gap.from_ns)}  {length:<8}  {gap.source}{where}: {gap.reason}{lost}"
        )
    hidden = len(gaps) - _SHOWN_GAPS
    if hidden > 0:
        lines.insert(1, f"  … {hidden} earlier ones: --json shows all")
    return lines


def _gap_to_json(gap: Gap) -> dict[str, object]:
    return {**gap.as_dict(), "from": format_moment(gap.from_ns), "to": format_moment(gap.to_ns)}


def _moment(moment_ns: int | None) -> str | None:
    return None if moment_ns is None else format_moment(moment_ns)
