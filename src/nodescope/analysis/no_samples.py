"""Explain a view without samples: none were taken, none were busy, or none matches the filter."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from nodescope.analysis.filter import compile_filter
from nodescope.analysis.top import rank
from nodescope.quantities import format_count
from nodescope.recording.window import Window
from nodescope.records.sample_filter import SampleFilter
from nodescope.wall_time import format_span

if TYPE_CHECKING:
    from nodescope.recording.recording import Recording

_NAMED = 3


def explain_no_samples(recording: Recording, window: Window, asked: SampleFilter) -> str:
    """Return why a view of a window shows no sample, in one sentence."""
    when = format_span(window.from_ns, window.to_ns)
    words = list(asked.words())
    ranked = rank(recording.samples(window), compile_filter(SampleFilter()), "comm")
    if not ranked or not words:
        return f"{_why_none(recording, window)} ({when})"
    total = sum(entry.samples for entry in ranked)
    filters = ", ".join(f"{name.replace('_', '-')}={text}" for name, text in words)
    said = f"none of {format_count(total, 'sample')} matches {filters} ({when})"
    names = [entry.name for entry in ranked]
    comms = [text for name, text in words if name == "comm"]
    near = [match for comm in comms for match in get_close_matches(comm, names, _NAMED)]
    if near:
        return f"{said}; similar names: {', '.join(near)}"
    if comms:
        return f"{said}; most samples: {', '.join(names[:_NAMED])}"
    return said


def _why_none(recording: Recording, window: Window) -> str:
    if recording.coverage("samples", window):
        return "no samples: the cores were sampled, and none was busy"
    whole = Window(recording.extent.from_ns, recording.extent.to_ns)
    denied = [
        event.message
        for event in recording.events(whole, "source_denied")
        if event.subject == "samples"
    ]
    if denied:
        return denied[-1].replace("are taken", "were taken", 1)
    reasons = [
        gap.reason
        for gap in recording.gaps(window)
        if gap.cpu is None and gap.source in ("samples", "all")
    ]
    if not reasons and recording.imported:
        return "no samples: this was imported from files without any"
    return f"no samples: {reasons[-1] if reasons else 'the recording does not say why'}"
