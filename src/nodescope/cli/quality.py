"""`nodescope quality`: how far a window can be trusted.

A command of its own and not a part of `status`: it reads samples and stacks of a
window, while `status` answers from descriptions alone, every second if need be.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from nodescope.cli import options
from nodescope.cli import window as windows
from nodescope.quantities import format_duration
from nodescope.wall_time import format_moment

if TYPE_CHECKING:
    from nodescope.analysis.quality import Quality

_SHOWN_GAPS = 10


def add_parser(commands: options.Commands) -> None:
    """Declare the command."""
    parser = options.add_command(
        commands,
        "quality",
        run,
        description="Show what a window lacks: samples lost in the rings, functions without a\n"
        "name and why, stacks cut off at the kernel's limit, stacks that the recorder folded\n"
        "to keep its budget, throttling, steps of the wall clock, gaps with their reasons; and\n"
        "how idle the cores were.",
        examples=[
            ("nodescope quality", "the whole recording"),
            ("nodescope quality --at 12:00:05 --around 60s --json", "an incident, for scripts"),
        ],
    )
    windows.add_window(parser)
    windows.add_filters(parser)
    options.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Assess and print."""
    from nodescope.analysis.quality import assess

    view = windows.open_view(args)
    quality = assess(view.recording, view.window, windows.build_filter(args), view.parts())
    if args.json:
        windows.print_document(
            {
                "from": format_moment(view.window.from_ns),
                "to": format_moment(view.window.to_ns),
                "from_ns": view.window.from_ns,
                "to_ns": view.window.to_ns,
                **quality_to_json(quality),
            }
        )
    else:
        print(render_quality(quality))
    return 0


def quality_to_json(quality: Quality) -> dict[str, object]:
    """Counts and shares; at most a thousand gaps and clock steps are listed."""
    document = asdict(quality)
    document["gaps"] = [
        {**gap.as_dict(), "from": format_moment(gap.from_ns), "to": format_moment(gap.to_ns)}
        for gap in quality.gaps[:1000]
    ]
    document["gap_count"] = len(quality.gaps)
    document["clock_steps"] = [
        {**asdict(step), "time": format_moment(step.time_ns)} for step in quality.clock_steps[:1000]
    ]
    for name in ("lost_share", "kernel_unresolved_share", "user_unresolved_share"):
        document[name] = getattr(quality, name)
    document["truncated_share"] = quality.truncated_share
    document["folded_share"] = quality.folded_share
    document["unseen_ns"] = quality.unseen_ns
    return document


def render_quality(quality: Quality) -> str:
    """One fact a line."""
    lines = [
        f"samples     {quality.samples:,}, {quality.lost:,} lost{_percent(quality.lost_share)}",
        (
            f"kernel      {quality.kernel_unresolved:,} of {quality.kernel_frames:,} frames have "
            f"no name{_percent(quality.kernel_unresolved_share)}"
        ),
        (
            f"user        {quality.user_unresolved:,} of {quality.user_frames:,} frames have "
            f"no name{_percent(quality.user_unresolved_share)}"
        ),
        *_render_reasons(quality.unresolved_reasons),
        (
            f"cut off     {quality.truncated_stacks:,} stacks at the kernel's limit"
            f"{_percent(quality.truncated_share)}"
        ),
        (
            f"folded      {quality.folded_stacks:,} stacks without their middle"
            f"{_percent(quality.folded_share)}"
        ),
        f"throttled   {quality.throttled:,} times",
        "idle        "
        + (
            "not known: no core times"
            if quality.idle_share is None
            else f"{100 * quality.idle_share:.1f} % of the cores' time"
        ),
    ]
    if quality.late_ns is not None:
        lines.append(f"late        {format_duration(quality.late_ns)} at worst")
    if quality.idle_task_samples:
        lines.append(f"idle task   {quality.idle_task_samples:,} samples of pid 0")
    if not quality.clock_steps:
        lines.append("clock       never set")
    for step in quality.clock_steps[-_SHOWN_GAPS:]:
        by = format_duration(abs(step.by_ns))
        way = "forward" if step.by_ns > 0 else "back"
        lines.append(f"clock       set {way} by {by} at {format_moment(step.time_ns)}")
    unseen = f", {format_duration(quality.unseen_ns)} not seen at all" if quality.unseen_ns else ""
    lines.append(f"gaps        {len(quality.gaps):,}{unseen}")
    for gap in quality.gaps[-_SHOWN_GAPS:]:
        where = "" if gap.cpu is None else f" on core {gap.cpu}"
        length = format_duration(max(gap.to_ns - gap.from_ns, 0))
        lines.append(
            f"  {format_moment(gap.from_ns)}  {length:<8}  {gap.source}{where}: {gap.reason}"
        )
    return "\n".join(lines)


def _render_reasons(reasons: dict[str, int] | None) -> list[str]:
    from nodescope.pictures.text import visible

    if not reasons:
        return []
    counts = ", ".join(f"{visible(reason)} {count:,}" for reason, count in reasons.items())
    return [f"unnamed     {counts} (places, since the recorder started)"]


def _percent(share: float | None) -> str:
    return "" if share is None else f" ({100 * share:.2f} %)"
