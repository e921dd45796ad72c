"""Cores over time as a picture. Where several share a place, the worst is shown:
one pegged core of 96 must be seen.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodescope.analysis.cores import CoreShares
from nodescope.arrays import F64, Bool
from nodescope.pictures.axis import add_legend, add_time_axis, render_time_axis
from nodescope.pictures.colour import FAINT, NIGHT, PAPER, one, ramp
from nodescope.pictures.drawing import Box, Drawing, Raster
from nodescope.pictures.terminal import Terminal
from nodescope.pictures.text import fit, percent, visible
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.wall_time import format_span, format_time_of_day

LABELS = 10
PICTURE_COLUMNS = 1100
HOTTEST = 5
PEGGED = 0.95
MOSTLY_SYSTEM = 0.5  # of the core's time: such cells of `total` are marked
_EIGHTHS, _ASCII = " ▁▂▃▄▅▆▇█", " .:-=+*#%@"
_SYSTEM = "S"


@dataclass(frozen=True, slots=True)
class CoreSpan:
    """A span in which one mode, or one process, had a core to itself."""

    cpu: int
    from_ns: int
    to_ns: int
    said: str
    pegged: bool  # by the kernel; else kept in another mode
    by: str | None  # who had most of the samples, if anybody did
    from_before: bool = False  # it started before the first reading that was looked at
    goes_on: bool = False  # it ended after the last one


@dataclass(frozen=True, slots=True)
class Hot:
    """A core at its worst."""

    cpu: int
    most: float
    at_ns: int
    mean: float
    pegged_ns: int
    system: float  # at that time


def state_shares(shares: CoreShares, by: str) -> F64:
    """[cpu][interval] of one state, or of `total`."""
    return shares.busy if by == "total" else shares.shares[by]


def find_hottest(shares: CoreShares, by: str, count: int) -> list[Hot]:
    """The cores with the highest share, longest at the top first."""
    values = state_shares(shares, by)
    found = []
    for cpu, row in zip(shares.cpus, values, strict=True):
        known = row[~np.isnan(row)]
        if len(known):
            at = int(np.nanargmax(row))
            pegged = int((known >= PEGGED).sum()) * shares.interval_ns
            moment = shares.from_ns + at * shares.interval_ns
            system = float(shares.shares["system"][shares.cpus.index(cpu)][at])
            found.append(Hot(cpu, float(row[at]), moment, float(known.mean()), pegged, system))
    found.sort(key=lambda hot: (-hot.pegged_ns, -round(hot.most, 3), -round(hot.mean, 3), hot.cpu))
    return found[:count]


def worst_of(values: F64, groups: int, axis: int) -> F64:
    """Fold an axis into at most `groups` by the maximum; what nobody read stays NaN."""
    size = -(-values.shape[axis] // max(groups, 1))
    if size <= 1:
        return values
    starts = np.arange(0, values.shape[axis], size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        folded: F64 = np.fmax.reduceat(values, starts, axis=axis)
    return folded


def render_cores(
    shares: CoreShares,
    by: str,
    terminal: Terminal,
    heading: str,
    spans: Sequence[CoreSpan] = (),
    listed: int = 0,
) -> str:
    """Return lines for a terminal; cells of `total` that are mostly system time are marked."""
    values = state_shares(shares, by)
    if not shares.cpus or np.isnan(values).all():
        return f"{heading}\nno times of cores were read in this window"
    lines_free = max(terminal.height - 7 - HOTTEST, 4)
    band = -(-len(shares.cpus) // lines_free)
    count = -(-len(shares.cpus) // band)
    bands = worst_of(values, count, 0)
    plot = terminal.width - LABELS
    columns = worst_of(bands, plot, 1)
    system = worst_of(worst_of(shares.shares["system"], count, 0), plot, 1)
    marked = (system >= MOSTLY_SYSTEM) & (by == "total")
    wide = max(plot // columns.shape[1], 1)
    side = "│" if terminal.unicode else "|"
    lines = [terminal.bold(fit(heading, terminal.width))]
    for number, row in enumerate(columns):
        members = shares.cpus[number * band : (number + 1) * band]
        name = str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}"
        drawn = _cells(row, marked[number], wide, terminal)
        lines.append(terminal.faint(f"{name:>{LABELS - 2}} {side}") + drawn)
    per_column = -(-values.shape[1] // columns.shape[1])
    to_ns = shares.from_ns + columns.shape[1] * per_column * shares.interval_ns
    width = columns.shape[1] * wide
    lines += render_time_axis(shares.from_ns, to_ns, width, LABELS, terminal)
    said = _explain(shares, by, band, per_column, terminal)
    lines += [" " * LABELS + line for line in textwrap.wrap(said, plot)]
    lines += ["", *render_hottest(shares, by, spans, listed)]
    return "\n".join(line.rstrip() for line in lines)


def _cells(row: F64, marked: Bool, wide: int, terminal: Terminal) -> str:
    parts = []
    shades = _EIGHTHS if terminal.unicode else _ASCII
    for value, mark in zip(row.tolist(), marked.tolist(), strict=True):
        if value != value:
            parts.append(terminal.faint(("·" if terminal.unicode else "?") * wide))
            continue
        step = min(int(value * (len(shades) - 1) + 0.5), len(shades) - 1)
        cell = (_SYSTEM if mark else shades[step]) * wide
        parts.append(terminal.paint(cell, one(0.3 + 0.7 * value, NIGHT)) if step else cell)
    return "".join(parts)


def _explain(shares: CoreShares, by: str, band: int, per_column: int, terminal: Terminal) -> str:
    full, unread = ("█", "·") if terminal.unicode else ("@", "?")
    said = [f"{full} 100 %", f"{unread} not read"]
    if by == "total":
        said.insert(1, f"{_SYSTEM} mostly system time")
    if band > 1:
        said.append(f"a line is the worst of {band} cores")
    interval = format_duration(shares.interval_ns)
    if per_column > 1:
        spanned = format_duration(per_column * shares.interval_ns)
        said.append(f"a column the worst {interval} of {spanned}")
    elif shares.interval_ns > SECOND_NS:
        said.append(f"a column is {interval}")
    return ", ".join(said)


def render_hottest(
    shares: CoreShares, by: str, spans: Sequence[CoreSpan] = (), listed: int = 0
) -> list[str]:
    """Return a line for each of the worst cores, and one for each time it was pegged or kept.

    Of each core so many spans are `listed`, 0 is all.
    """
    lines = []
    for hot in find_hottest(shares, by, HOTTEST):
        mine = [each for each in spans if each.cpu == hot.cpu]
        high = f", {format_duration(hot.pegged_ns)} above 95 %" if hot.pegged_ns else ""
        system = f" ({percent(hot.system)} system)" if by == "total" else ""
        lines.append(
            f"core {hot.cpu:<4} {percent(hot.most):>8} {by}{system} at "
            f"{format_time_of_day(hot.at_ns)}, mean {percent(hot.mean)}{'' if mine else high}"
        )
        lines += [_render_span(each) for each in mine[: listed or None]]
        if listed and len(mine) > listed:
            lines.append(f"  and {len(mine) - listed:,} more, not longer: --spans 0 lists all")
    return lines


def _render_span(span: CoreSpan) -> str:
    word = "pegged" if span.pegged else "kept"
    by = f", by {visible(span.by)}" if span.by is not None else ""
    when = f"{'before ' * span.from_before}{format_span(span.from_ns, span.to_ns)}"
    when += " or later" * span.goes_on
    longer = " or longer" * (span.from_before or span.goes_on)
    return f"  {word:<8} {when}: {span.said}{longer}{by}"


def draw_cores(shares: CoreShares, by: str, heading: str) -> Drawing:
    """The picture for a file."""
    values = worst_of(state_shares(shares, by), PICTURE_COLUMNS, 1)
    count, columns = max(values.shape[0], 1), max(values.shape[1], 1)
    per_column = -(-state_shares(shares, by).shape[1] // columns)
    cell = min(max(PICTURE_COLUMNS / columns, 1.0), 60.0)
    line = min(max(640.0 / count, 3.0), 18.0)
    left, top, width, height = 64.0, 48.0, columns * cell, count * line
    hottest = render_hottest(shares, by)
    size = (round(max(left + width + 24, 640)), round(top + height + 84 + 16 * len(hottest)))
    drawing = Drawing(*size, heading)
    drawing.words(left, 28, heading, large=True)
    if values.size:
        drawing.shapes.append(Raster(left, top, width, height, ramp(values, PAPER)))
    every = -(-12 // max(int(line), 1))
    for number, cpu in enumerate(shares.cpus):
        y = top + number * line
        if number % every == 0:
            drawing.words(left - 8, y + line / 2 + 4, str(cpu), FAINT, "end")
    if values.size <= 6000:
        step = per_column * shares.interval_ns
        system = worst_of(shares.shares["system"], PICTURE_COLUMNS, 1)
        for number, cpu in enumerate(shares.cpus):
            for at, value in enumerate(values[number].tolist()):
                said = "not read" if value != value else f"{percent(value)} {by}"
                if by == "total" and value == value:
                    said += f", {percent(float(system[number][at]))} system"
                title = f"core {cpu} · {format_time_of_day(shares.from_ns + at * step)} · {said}"
                place = (left + at * cell, top + number * line, cell, line)
                drawing.box(Box(*place, None, title))
    else:
        for number, hot in enumerate(find_hottest(shares, by, count)):
            row = shares.cpus.index(hot.cpu)
            title = f"core {hot.cpu} · at most {percent(hot.most)} {by}, mean {percent(hot.mean)}"
            drawing.box(Box(left, top + row * line, width, line, None, title))
            if number == 0:
                drawing.words(left + width + 6, top + row * line + line / 2 + 4, "<", FAINT)
    to_ns = shares.from_ns + columns * per_column * shares.interval_ns
    add_time_axis(drawing, left, top + height, width, shares.from_ns, to_ns)
    add_legend(drawing, left, top + height + 36, "0", f"100 % {by}; grey was not read")
    for number, text in enumerate(hottest):
        drawing.words(left, top + height + 72 + 16 * number, text)
    return drawing
