"""The pictures of a report: the cores' strip, the heatmap, the held core's functions, zombies.

Each is drawn from the recording around one finding; one whose data is missing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nodescope.analysis.filter import Filter
from nodescope.analysis.flame import Names, flame_of
from nodescope.analysis.heatmap import make_heatmap
from nodescope.analysis.window import SECOND_NS, Window, overlapping, read_parts
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Finding
from nodescope.pictures import documents
from nodescope.pictures.axis import add_time_axis
from nodescope.pictures.colour import FAINT, INK, Colour
from nodescope.pictures.cores import draw_cores
from nodescope.pictures.drawing import Box, Drawing
from nodescope.pictures.flame import draw_flame
from nodescope.pictures.heatmap import draw_heatmap
from nodescope.pictures.text import clock, visible

AROUND_NS = 60 * SECOND_NS
TREND_NS = 12 * 3600 * SECOND_NS
_WIDTH, _LEFT = 1000.0, 64.0
_BAD: Colour = (176, 58, 46)
_ROW = 16.0


def draw_evidence(case: Case, finding: Finding) -> Iterator[Drawing]:
    """The pictures of one finding, each with its heading."""
    at_ns = finding.symptom.time_ns
    window = Window(at_ns - AROUND_NS, at_ns + AROUND_NS // 2)
    yield _timeline(case, window, finding)
    if case.recorded("cores"):
        shares = case.shares(window)
        if shares.cpus:
            yield draw_cores(shares, "system", "System time of every core, second by second")
    held = _held_span(finding)
    cpu = _held_cpu(finding)
    if case.recorded("samples") and cpu is not None:
        chosen = Filter(cpus=frozenset([cpu]))
        parts = read_parts(case.segments, window)
        made = make_heatmap(parts, chosen, window.from_ns, window.to_ns, 50, 200)
        drawing = draw_heatmap(made, f"Samples of core {cpu}, by second and offset")
        _mark(drawing, window, held or window)
        yield drawing
        yield from _flame(case, held or window, cpu)
    yield from _zombies(case, at_ns)


def _held_span(finding: Finding) -> Window | None:
    for symptom in (finding.symptom, *finding.also):
        if symptom.kind == "core_held" and symptom.from_ns is not None:
            return Window(symptom.from_ns, symptom.time_ns)
    return None


def _held_cpu(finding: Finding) -> int | None:
    for chain in finding.chains:
        for link in chain.links:
            if link.kind == "core":
                return int(link.subject.removeprefix("cpu"))
    return finding.symptom.cpu


def _mark(drawing: Drawing, window: Window, span: Window) -> None:
    """A line over the heatmap where the core was held."""
    width = drawing.width - _LEFT - 24
    x = _LEFT + width * (span.from_ns - window.from_ns) / window.length_ns
    drawing.box(Box(x, 41, width * span.length_ns / window.length_ns, 4, _BAD, "held"))


def _flame(case: Case, span: Window, cpu: int) -> Iterator[Drawing]:
    names = Names()
    rows = flame_of(
        read_parts(case.segments, span), Filter(cpus=frozenset([cpu])), names,
        count=len(overlapping(case.segments, span)),
    )  # fmt: skip
    tree, _ = documents.flame_document(rows, names)
    if tree["value"]:
        yield draw_flame(tree, f"What ran on core {cpu} in those seconds")


def _timeline(case: Case, window: Window, finding: Finding) -> Drawing:
    """What happened around it, a line per kind of event."""
    near = [e for e in case.events if window.from_ns <= e.time_ns < window.to_ns]
    kinds = list(dict.fromkeys(event.kind for event in near))[:14]
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
                title = f"{clock(event.time_ns)} {event.subject}: {event.message}"
                drawing.box(Box(x, y + 2, 4, _ROW - 4, INK, visible(title)))
    x = (
        _LEFT
        + 170
        + (_WIDTH - 170) * ((finding.symptom.time_ns - window.from_ns) / window.length_ns)
    )
    drawing.box(Box(x, top - 6, 1.5, len(kinds) * _ROW + 8, _BAD, "the symptom"))
    y = top + len(kinds) * _ROW + 2
    add_time_axis(drawing, _LEFT + 170, y, _WIDTH - 170, window.from_ns, window.to_ns)
    return drawing


def _zombies(case: Case, at_ns: int) -> Iterator[Drawing]:
    """Removed memory cgroups over the hours before."""
    window = Window(at_ns - TREND_NS, at_ns + AROUND_NS)
    rows = sorted(
        (row["time_ns"], row["dying"])
        for row in case.rows("memory_cgroups", window)
        if row["dying"] is not None
    )
    if len(rows) < 2:
        return
    times = np.array([row[0] for row in rows], np.float64)
    values = np.array([row[1] for row in rows], np.float64)
    top, height = 48.0, 180.0
    drawing = Drawing(round(_LEFT + _WIDTH + 24), round(top + height + 40), "Zombie memory cgroups")
    drawing.words(_LEFT, 28, f"{drawing.title}: {int(values[-1]):,}", large=True)
    most = max(values.max(), 1.0)
    columns = 250
    bins = np.clip(((times - times[0]) / max(times[-1] - times[0], 1) * columns), 0, columns - 1)
    for column in range(columns):
        inside = values[bins.astype(int) == column]
        if len(inside):
            tall = height * inside.max() / most
            x = _LEFT + column * _WIDTH / columns
            drawing.box(
                Box(x, top + height - tall, _WIDTH / columns, max(tall, 0.5), (120, 106, 160),
                    f"{int(inside.max()):,}")
            )  # fmt: skip
    drawing.words(_LEFT - 8, top + 8, f"{int(most):,}", FAINT, "end")
    drawing.words(_LEFT - 8, top + height, "0", FAINT, "end")
    add_time_axis(drawing, _LEFT, top + height, _WIDTH, int(times[0]), int(times[-1]))
    yield drawing
