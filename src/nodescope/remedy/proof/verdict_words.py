"""The verdicts and the forecast, as text and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict

from nodescope.quantities import SECOND_NS, format_duration
from nodescope.records.json import Json
from nodescope.remedy.proof.assess import PredictionVerdict, Verdicts
from nodescope.remedy.proof.forecast import LeakSource, Passing, ZombieForecast
from nodescope.wall_time import format_moment

_COMES_BACK = {True: "starts again by itself", False: "does not come back", None: "not known"}


def verdicts_document(verdicts: Verdicts) -> dict[str, Json]:
    """Return the verdicts as JSON."""
    mechanism, outcome = verdicts.mechanism, verdicts.outcome
    return {
        "mechanism": {
            "verdict": mechanism.verdict,
            "p": mechanism.p,
            "because": mechanism.because,
            "measures": [asdict(each) for each in mechanism.measures],
        },
        "outcome": asdict(outcome),
        "predictions": [asdict(each) for each in verdicts.predictions],
        "proven": verdicts.proven,
        "elapsed_s": round(verdicts.elapsed_s, 1),
    }


def render_verdicts(verdicts: Verdicts) -> str:
    """Return the verdicts as a person reads them."""
    mechanism, outcome = verdicts.mechanism, verdicts.outcome
    lines = [f"Mechanism stopped: {mechanism.verdict}", f"  {mechanism.because}"]
    if mechanism.p is not None:
        lines.append(f"  an unmended node looks like this {describe_chance(mechanism.p)}")
    told = {part.strip() for part in mechanism.because.split("; ")}
    lines += [
        f"  {each.because}"
        for each in mechanism.measures
        if not {part.strip() for part in each.because.split("; ")} <= told
    ]
    lines += [f"Outcome improved: {outcome.verdict}", f"  {outcome.because}"]
    if outcome.verdict == "unknown" and outcome.node_hours_needed is not None:
        lines.append(
            f"  {outcome.node_hours_needed:,.3g} more node-hours without any would show it"
        )
    lines += [f"Predicted: {_describe_prediction(each)}" for each in verdicts.predictions]
    return "\n".join(lines)


def describe_progress(verdicts: Verdicts) -> str:
    """Return one line of the verdict so far."""
    span = format_duration(int(verdicts.elapsed_s) * SECOND_NS)
    p = verdicts.mechanism.p
    chance = "" if p is None else f" (p = {p:.2g})"
    return f"{span} after the plan: mechanism {verdicts.mechanism.verdict}{chance}"


def describe_chance(p: float) -> str:
    """Return a probability in words."""
    if p <= 0 or p < 1e-15:
        return "practically never"
    if p >= 0.1:
        return f"{p:.0%} of the time"
    return f"once in {float(f'{1 / p:.2g}'):,.0f} times"


def _describe_prediction(each: PredictionVerdict) -> str:
    if each.measured is None:
        return f"{each.what}: not measured"
    word = "as predicted" if each.came else "not as predicted"
    return f"{each.what}: {each.measured:,.0f}, {word} ({each.low:,.0f} to {each.high:,.0f})"


# -- forecast ------------------------------------------------------------------------


def forecast_document(forecast: ZombieForecast) -> dict[str, Json]:
    """Return a forecast as JSON."""
    return {**asdict(forecast), "at": format_moment(forecast.at_ns)}


def render_forecast(forecast: ZombieForecast) -> str:
    """Return a forecast as a person reads it."""
    lines = [f"{forecast.dying:,} zombies at {format_moment(forecast.at_ns)}: {forecast.because}"]
    if forecast.per_hour is not None and forecast.per_hour_low is not None:
        lines.append(
            f"  {forecast.per_hour:+,.0f} an hour ({forecast.per_hour_low:+,.0f} to "
            f"{forecast.per_hour_high:+,.0f})"
        )
    lines += ["This node:", *(f"  {_describe_passing(each, 'from now')}" for each in forecast.node)]
    lines.append("A replacement from the same image, or this node after a reboot:")
    lines += [f"  {_describe_passing(each, 'after the boot')}" for each in forecast.replacement]
    lines += [f"  {_describe_source(each)}" for each in forecast.sources]
    if not forecast.sources:
        lines.append("  what leaks is not known by name")
    return "\n".join(lines)


def _describe_passing(each: Passing, since: str) -> str:
    title = f"{each.level} ({each.threshold:,})"
    if each.will != "will pass" or each.likely_s is None:
        return f"{title}: {each.will}"
    least, longest = _rough(each.least_s), _rough(each.longest_s)
    return f"{title}: in {_rough(each.likely_s)} {since} ({least} to {longest})"


def _describe_source(source: LeakSource) -> str:
    return f"{source.kind} {source.name}: {_COMES_BACK[source.comes_back]} ({source.because})"


def _rough(seconds: float | None) -> str:
    """Return a time without digits that a forecast does not have."""
    if seconds is None or math.isinf(seconds):
        return "never"
    unit = 3600 if seconds >= 36_000 else 60 if seconds >= 600 else 1
    return format_duration(max(1, round(seconds / unit)) * unit * SECOND_NS)
