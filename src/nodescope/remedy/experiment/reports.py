"""Experiments as text and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict

from nodescope.quantities import HOUR_NS, format_duration
from nodescope.records.json import Json
from nodescope.remedy.experiment.design import ExperimentDesign
from nodescope.remedy.experiment.status import ArmComparison, ExperimentStatus
from nodescope.remedy.experiment.templates import CONTROL, TEMPLATES, mitigation_of


def templates_document() -> list[Json]:
    """Return the templates as JSON."""
    return [asdict(each) for each in TEMPLATES]


def render_templates() -> str:
    """Return the templates, one after the other."""
    lines = []
    for each in TEMPLATES:
        lines += [f"{each.name}: {each.what}", f"  change: {each.change}", f"  undo:   {each.undo}"]
    return "\n".join(lines)


def design_document(design: ExperimentDesign) -> dict[str, Json]:
    """Return a design as JSON."""
    return {**asdict(design), "version": 1}


def render_design(design: ExperimentDesign) -> str:
    """Return a design as a person reads it."""
    times = 1 / design.ratio
    lines = [
        f"{len(design.assignments)} nodes, seed {design.seed}: "
        + ", ".join(f"{arm} {design.count(arm)}" for arm in (CONTROL, *design.arms)),
        f"to find {times:.3g} times fewer events with {design.power:.0%} power, at most 5 % false",
    ]
    if design.control_events is None:
        lines.append("  needs more than 2,000 events in control: not practical")
    else:
        lines.append(f"  needs {design.control_events:.0f} events in control")
    if design.rate_per_h:
        low, high = design.rate_low or 0.0, design.rate_high or math.inf
        lines.append(
            f"  so far one event per {1 / design.rate_per_h:,.0f} node-hours "
            f"({1 / high:,.0f} to {1 / low if low else math.inf:,.0f})"
        )
    else:
        lines.append("  the past rate is not known (events and node_hours of the nodes): no time")
    if design.hours_needed is not None:
        lines.append(f"  about {_span(design.hours_needed)} with these nodes")
    for arm in design.arms:
        each = mitigation_of(arm)
        lines += ["", f"{arm}: {each.what}"]
        lines += [f"  {word}: {text}" for word, text in
                  (("change", each.change), ("undo", each.undo)) if text]  # fmt: skip
    lines += ["", "node  stratum  arm"]
    lines += [f"{each.node}  {each.stratum}  {each.arm}" for each in design.assignments]
    return "\n".join(lines)


def status_document(status: ExperimentStatus) -> dict[str, Json]:
    """Return a status as JSON; an interval without an end has null there."""
    comparisons: list[Json] = [
        {
            **asdict(each),
            "ratio_high": None if math.isinf(each.ratio_high) else each.ratio_high,
            "shown": each.shown,
        }
        for each in status.comparisons
    ]
    return {**asdict(status), "comparisons": comparisons}


def render_status(status: ExperimentStatus) -> str:
    """Return a status as a person reads it."""
    lines = [f"after {status.days} days:"]
    lines += [
        f"  {each.arm}: {each.events} events in {each.node_hours:,.0f} node-hours, "
        f"{each.failed_nodes} of {each.nodes} nodes"
        for each in status.totals
    ]
    lines += [line for each in status.comparisons for line in _comparison(each)]
    for names, what in ((status.silent, "without data"), (status.strangers, "not assigned")):
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            lines.append(f"{what}: {', '.join(names[:5])}{more}")
    return "\n".join(lines)


def _comparison(each: ArmComparison) -> list[str]:
    lines = [f"{each.arm} against {CONTROL}: {each.advice}"]
    if each.advice == "no data":
        return lines
    high = "∞" if math.isinf(each.ratio_high) else f"{each.ratio_high:.2g}"
    ratio = "not known" if each.ratio is None else f"{each.ratio:.2g}"
    lines.append(f"  rate ratio {ratio} ({each.ratio_low:.2g} to {high}), all events")
    lines.append(f"  e-value {each.e_value:.3g} of {each.stop_at:g} by nodes' first events")
    if each.hours_left:
        lines.append(f"  about {_span(each.hours_left)} more by the sample size")
    return lines


def _span(hours: float) -> str:
    return format_duration(max(1, round(hours)) * HOUR_NS)
