"""The pictures of a report: timeline, core strip, heatmap, flame diff, zombie trend.

Each is drawn from the recording around one finding; one whose data is missing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nodescope.analysis.compare import BASELINE_NS
from nodescope.analysis.filter import Filter
from nodescope.analysis.flame import flame_of
from nodescope.analysis.flame_node import FlameNode
from nodescope.analysis.flame_rows import FlameNames
from nodescope.analysis.heatmap import make_heatmap
from nodescope.arrays import I64
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Finding
from nodescope.judgement.pegged_cores import BRIEF_NS
from nodescope.judgement.zombie_reading import read_dying
from nodescope.pictures import documents
from nodescope.pictures.axis import add_time_axis
from nodescope.pictures.colour import FAINT, INK, Colour
from nodescope.pictures.cores import draw_cores
from nodescope.pictures.drawing import Box, Drawing
from nodescope.pictures.flame import draw_flame
from nodescope.pictures.flame_change import draw_flame_change, with_before
from nodescope.pictures.heatmap import draw_heatmap
from nodescope.pictures.text import visible
from nodescope.quantities import HOUR_NS, SECOND_NS, format_duration
from nodescope.recording.window import Window
from nodescope.wall_time import format_time_of_day

AROUND_NS = 60 * SECOND_NS
BEFORE_NS = 5 * SECOND_NS  # before a moment at which no core was pegged
LEAST_BASELINE_NS = 3 * SECOND_NS
MISSED = 0.05  # of what ran now: so much must be gone to be missed
TREND_NS = 12 * HOUR_NS
SEEN = 0.3  # of the height: a trend that takes less of an axis from 0 is not seen
MOST_KINDS = 14  # of events in the timeline
_WIDTH, _LEFT = 1000.0, 64.0
_BAD: Colour = (176, 58, 46)
_ROW = 16.0


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing with a sentence that says how to read it."""

    drawing: Drawing
    caption: str


@dataclass(frozen=True, slots=True)
class Focus:
    """The subject of the pictures of samples: one core, or all of them, for some seconds."""

    cpu: int | None
    span: Window

    @property
    def place(self) -> str:
        return "all cores" if self.cpu is None else f"core {self.cpu}"

    @property
    def filter(self) -> Filter:
        return Filter(cpus=None if self.cpu is None else frozenset([self.cpu]))


def draw_evidence(case: Case, finding: Finding) -> Iterator[Picture]:
    """The pictures of one finding."""
    at_ns = finding.symptom.time_ns
    window = _recorded_around(case, at_ns)
    yield _timeline(case, window, finding)
    yield from _core_strip(case, window)
    if case.recorded("samples"):
        focus = _find_focus(case, window, finding)
        yield _heatmap(case, window, focus)
        yield from _flame(case, focus)
    yield from _zombies(case, at_ns)


def _recorded_around(case: Case, at_ns: int) -> Window:
    """Return what was recorded of the minute before a moment and the half minute after it."""
    from_ns, to_ns = at_ns - AROUND_NS, at_ns + AROUND_NS // 2
    if case.recording.parts:
        extent = case.recording.extent
        from_ns = max(from_ns, min(extent.from_ns, at_ns - SECOND_NS))
        to_ns = min(to_ns, max(extent.to_ns, at_ns + SECOND_NS))
    return Window(from_ns, to_ns)


def _find_focus(case: Case, window: Window, finding: Finding) -> Focus:
    """Return the pegged core and when it was pegged; else all of them, just before the symptom."""
    cpu = _held_cpu(finding)
    held = [each for each in case.pegged_cores(window, BRIEF_NS) if each.cpu == cpu]
    if held:
        longest = max(held, key=lambda each: each.seconds)
        return Focus(cpu, Window(longest.from_ns, longest.to_ns))
    at_ns = finding.symptom.time_ns
    return Focus(cpu, Window(at_ns - BEFORE_NS, at_ns))


def _held_cpu(finding: Finding) -> int | None:
    for chain in finding.chains:
        for link in chain.links:
            if link.kind == "core":
                return int(link.subject.removeprefix("cpu"))
    return finding.symptom.cpu


def _core_strip(case: Case, window: Window) -> Iterator[Picture]:
    if not case.recorded("cores"):
        return
    shares = case.shares(window)
    if shares.cpus:
        drawing = draw_cores(shares, "system", "System time of every core, second by second")
        yield Picture(
            drawing,
            "Core strip: a row is a core, a column a second; the colour is the share of it that "
            "was spent in the kernel.",
        )


def _heatmap(case: Case, window: Window, focus: Focus) -> Picture:
    parts = case.recording.samples(window)
    made = make_heatmap(parts, focus.filter, window.from_ns, window.to_ns, 50, 200)
    heading = f"Samples of {focus.place}, by second and offset"
    return Picture(
        draw_heatmap(made, heading, focus.span),
        f"Heatmap: a column is a second, upwards goes its offset; framed are the "
        f"{format_duration(focus.span.length_ns)} from {format_time_of_day(focus.span.from_ns)}.",
    )


def _flame(case: Case, focus: Focus) -> Iterator[Picture]:
    """Draw what ran in those seconds against the half hour before, or as much as there is."""
    now = _tree(case, focus, focus.span)
    if not now["value"]:
        return
    length = format_duration(focus.span.length_ns)
    before = _before(case, focus.span)
    usual = None if before is None else _tree(case, focus, before)
    if before is None or usual is None:
        yield Picture(
            draw_flame(now, f"Flame graph of {focus.place}, {length}"),
            "Flame graph, not a diff: no samples were taken before those seconds to compare with.",
        )
        return
    scale = focus.span.length_ns / before.length_ns
    tree = with_before(now, usual, scale)
    against = format_duration(before.length_ns)
    yield Picture(
        draw_flame_change(tree, f"Flame diff of {focus.place}: {length} against {against} before"),
        f"Flame diff: what ran in those {length}, coloured by its change from the {against} "
        f"before: red is new or more, blue is less.{_gone(now, usual, scale)}",
    )


def _before(case: Case, span: Window) -> Window | None:
    """The half hour before, from its first sample on: other tables may begin earlier."""
    asked = Window(span.from_ns - BASELINE_NS, span.from_ns)
    sampled = (part.time_ns for part in case.recording.samples(asked))
    first = next((int(times.min()) for times in sampled if len(times)), span.from_ns)
    if span.from_ns - first < LEAST_BASELINE_NS:
        return None
    return Window(first, span.from_ns)


def _tree(case: Case, focus: Focus, window: Window) -> FlameNode:
    names = FlameNames()
    rows = flame_of(
        case.recording.samples(window), focus.filter, names,
        count=len(case.recording.overlapping(window)),
    )  # fmt: skip
    return documents.flame_document(rows, names)[0]


def _gone(now: FlameNode, before: FlameNode, scale: float) -> str:
    """Name who ran before and no longer does: the graph of now cannot show them."""
    here = {child["name"] for child in now["children"]}
    gone = [
        f"{visible(child['name'])} ({child['value'] * scale:,.0f} samples in as long before)"
        for child in before["children"]
        if child["name"] not in here and child["value"] * scale >= MISSED * now["value"]
    ]
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    return f" Not there any more: {', '.join(gone[:3])}{more}." if gone else ""


def _timeline(case: Case, window: Window, finding: Finding) -> Picture:
    """Draw the events around the incident, a line per kind."""
    near = [e for e in case.events if window.from_ns <= e.time_ns < window.to_ns]
    every = list(dict.fromkeys(event.kind for event in near))
    kinds = every[:MOST_KINDS]
    top = 48.0
    drawing = Drawing(
        round(_LEFT + _WIDTH + 24), round(top + len(kinds) * _ROW + 40), "What happened around it"
    )
    drawing.words(_LEFT, 28, drawing.title, large=True)
    for number, kind in enumerate(kinds):
        y = top + number * _ROW
        drawing.words(_LEFT, y + 11, kind, FAINT)
        for event in near:
            if event.kind == kind:
                x = (
                    _LEFT
                    + 170
                    + (_WIDTH - 170) * ((event.time_ns - window.from_ns) / window.length_ns)
                )
                title = f"{format_time_of_day(event.time_ns)} {event.subject}: {event.message}"
                drawing.box(Box(x, y + 2, 4, _ROW - 4, INK, visible(title)))
    x = (
        _LEFT
        + 170
        + (_WIDTH - 170) * ((finding.symptom.time_ns - window.from_ns) / window.length_ns)
    )
    drawing.box(Box(x, top - 6, 1.5, len(kinds) * _ROW + 8, _BAD, "the symptom"))
    y = top + len(kinds) * _ROW + 2
    add_time_axis(drawing, _LEFT + 170, y, _WIDTH - 170, window.from_ns, window.to_ns)
    return Picture(
        drawing,
        f"Timeline: the events of those {format_duration(window.length_ns)} by kind; the red "
        f"line is the symptom."
        f"{_left_off(every[MOST_KINDS:])}",
    )


def _left_off(kinds: list[str]) -> str:
    return f" Not drawn: {', '.join(kinds)}." if kinds else ""


def _zombies(case: Case, at_ns: int) -> Iterator[Picture]:
    """Removed memory cgroups over the hours before."""
    window = Window(at_ns - TREND_NS, at_ns + AROUND_NS)
    rows = read_dying(case.recording, window)
    if len(rows) < 2:
        return
    times = np.array([row[0] for row in rows], np.int64)
    values = np.array([row[1] for row in rows], np.int64)
    first, last = (f"{int(values[at]):,} at {format_time_of_day(int(times[at]))}" for at in (0, -1))
    over = format_duration(int(times[-1] - times[0]))
    floor = _floor(values)
    cut = f" The axis begins at {floor:,}, not at 0." if floor else ""
    yield Picture(
        _trend(times, values, floor, at_ns, f"Zombie memory cgroups: {first}, {last}"),
        f"Zombie trend: removed memory cgroups that the kernel still keeps, over {over}: "
        f"{first}, {last}; the red line is the symptom.{cut}",
    )


def _floor(values: I64) -> int:
    """Where the axis begins: at 0, unless what changed would not be seen from there."""
    least, most = int(values.min()), int(values.max())
    grown = most - least
    return 0 if grown >= SEEN * most else max(0, least - max(grown, most // 20) // 4)


def _trend(times: I64, values: I64, floor: int, at_ns: int, title: str) -> Drawing:
    """A column for a while; where the axis is cut only its end is drawn, as its height lies."""
    top, height = 48.0, 180.0
    drawing = Drawing(round(_LEFT + _WIDTH + 24), round(top + height + 40), title)
    drawing.words(_LEFT, 28, title, large=True)
    begin, length = int(times[0]), max(int(times[-1] - times[0]), 1)
    most = max(int(values.max()), floor + 1)
    columns = min(250, len(times))  # looks are rarer than that in a short recording
    bins = np.minimum((times - begin) * columns // length, columns - 1)
    for column in range(columns):
        inside = values[bins == column]
        if not len(inside):
            continue
        high, low = int(inside.max()), floor if not floor else int(inside.min())
        y, foot = (top + height * (1 - (each - floor) / (most - floor)) for each in (high, low))
        drawing.box(
            Box(_LEFT + column * _WIDTH / columns, y, _WIDTH / columns, max(foot - y, 3.0),
                (120, 106, 160), f"{high:,}")
        )  # fmt: skip
    x = _LEFT + _WIDTH * (at_ns - begin) / length
    if _LEFT <= x <= _LEFT + _WIDTH:
        drawing.box(Box(x, top - 6, 1.5, height + 6, _BAD, "the symptom"))
    drawing.words(_LEFT - 8, top + 8, f"{most:,}", FAINT, "end")
    drawing.words(_LEFT - 8, top + height, f"{floor:,}", FAINT, "end")
    if floor:
        drawing.words(_LEFT + 6, top + height - 6, f"from {floor:,}, not from 0", FAINT)
    add_time_axis(drawing, _LEFT, top + height, _WIDTH, int(times[0]), int(times[-1]))
    return drawing
