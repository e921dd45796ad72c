"""Judge one measure of a mechanism: the time before a plan against the time after.

A measure is *direct* if it counts what the plan stops: restarts, cgroups made, kills. Of these
one after the plan refutes it. The others follow from the mechanism: zombies that grow, cores
that are pegged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodescope.analysis.exact_tests import count_above
from nodescope.analysis.recurrence import (
    UNKNOWN_OVERDISPERSION,
    Recurrence,
    Slope,
    few_probability,
    flat_probability,
    silence_probability,
    time_needed,
)
from nodescope.judgement.zombies import find_trend
from nodescope.quantities import HOUR_NS, SECOND_NS, format_duration
from nodescope.remedy.plan import Baseline
from nodescope.remedy.proof.aftermath import Aftermath

Answer = Literal["proven", "refuted", "unknown"]

MECHANISM_P = 0.01
DIRECT = ("unit_restarts", "child_failures", "container_restarts", "oom_kills", "cgroups_made")
# Others make cgroups there, too: a few do not refute, as long as far fewer are made.
_MAY_STAY = ("cgroups_made", "pegged_s")
_STILL = 0.5  # of the rate or slope before: so much or more is no remedy
_FLAT = 0.25  # of the slope before: less is none
_FEWEST = 5  # events that refute
# The longest wait of whoever restarts it, where its policy is not known: kubelet 5 min,
# docker 1 min, systemd mostly a constant that the gaps show.
_LONGEST_BACKOFF_S = {
    "unit_restarts": 60.0,
    "child_failures": 300.0,
    "container_restarts": 300.0,
    "cgroups_made": 300.0,
}
_LEVEL_LEAST_S = 600.0  # a level that was watched for less may turn by itself
_FALL, _FEW = 0.3, 20


@dataclass(frozen=True, slots=True)
class MeasureVerdict:
    """The verdict on one measure."""

    measure: str
    subject: str
    verdict: Answer
    p: float | None
    because: str
    needs_s: float | None = None  # of further silence until it is proven; None: cannot be told
    decides: bool = True  # False: only for information


def judge_measure(before: Baseline, after: Aftermath | None, *, at_rest: bool) -> MeasureVerdict:
    """Judge a measure; `at_rest`: all that the plan stopped was seen to wait for nothing."""
    name = before.measure, before.subject
    if after is None or after.count is None or after.observed_s <= 0:
        lost = after.lost if after is not None and after.lost else "not observed since the plan"
        return MeasureVerdict(*name, "unknown", None, f"{_title(before)}: {lost}")
    if before.measure == "walk_s":
        return _judge_cost(before, after)
    if before.measure == "zombies" or before.slope_per_s is not None:
        return _judge_level(before, after)
    known = recurrence_of(before, at_rest=at_rest)
    if before.measure in _MAY_STAY:
        return _judge_rate(before, after, known)
    return _judge_silence(before, after, known)


def recurrence_of(before: Baseline, *, at_rest: bool) -> Recurrence:
    """Return how it recurred, with the back-off that must be reckoned with."""
    backoff_s = before.backoff_s
    if backoff_s is None:
        backoff_s = _LONGEST_BACKOFF_S.get(before.measure, 0.0)
    alpha = before.overdispersion
    return Recurrence(
        before.count,
        before.exposure_s,
        UNKNOWN_OVERDISPERSION if alpha is None else alpha,
        before.longest_gap_s,
        0.0 if at_rest else backoff_s,
    )


# -- counts --------------------------------------------------------------------------


def _judge_silence(before: Baseline, after: Aftermath, known: Recurrence) -> MeasureVerdict:
    name = before.measure, before.subject
    count = round(after.count or 0)
    rate = f"one per {_span(known.mean_gap_s)} before"
    if count:
        p = few_probability(known, count, after.observed_s)
        because = f"{_title(before)}: {count} in {_span(after.observed_s)} since, {rate}"
        return MeasureVerdict(*name, "refuted", p, because)
    p = silence_probability(known, after.observed_s, after.unbroken_s)
    because = f"{_title(before)}: none in {_span(after.observed_s)} since, {rate}"
    return _conclude(before, after, known, p, because)


def _judge_rate(before: Baseline, after: Aftermath, known: Recurrence) -> MeasureVerdict:
    name = before.measure, before.subject
    count = round(after.count or 0)
    if count == 0:
        return _judge_silence(before, after, known)
    p = few_probability(known, count, after.observed_s)
    was, is_ = known.count / known.exposure_s, count / after.observed_s
    because = f"{_title(before)}: {is_ * 60:.3g} a minute since, {was * 60:.3g} before"
    half = _STILL * was * after.observed_s
    if count >= _FEWEST and count_above(count, half, known.overdispersion) <= MECHANISM_P:
        return MeasureVerdict(*name, "refuted", p, because)
    if is_ > _FLAT * was:
        return MeasureVerdict(*name, "unknown", p, because)
    return _conclude(before, after, known, p, because)


def _conclude(
    before: Baseline, after: Aftermath, known: Recurrence, p: float, because: str
) -> MeasureVerdict:
    """Return proven, or unknown with the time of silence that is still needed."""
    name = before.measure, before.subject
    if p <= MECHANISM_P:
        return MeasureVerdict(*name, "proven", p, because)
    if after.lost:
        because = f"{because}; {after.lost}"
    if known.backoff_s:
        because = f"{because}; whoever restarts it may wait {_span(known.backoff_s)} longer"
    needs_s = _silence_needed(known, after.observed_s)
    if needs_s is not None:
        because = f"{because}; {_span(needs_s)} more of silence would prove it"
    return MeasureVerdict(*name, "unknown", p, because, needs_s)


def _silence_needed(known: Recurrence, observed_s: float) -> float | None:
    """Return how much more unbroken silence proves that a loop is over; None if none would."""
    if known.count <= 0:
        return None
    total_s = time_needed(
        observed_s, lambda each_s: silence_probability(known, each_s, each_s), MECHANISM_P
    )
    return None if total_s is None else max(total_s - observed_s, 1.0)


# -- levels --------------------------------------------------------------------------


def _judge_level(before: Baseline, after: Aftermath) -> MeasureVerdict:
    name = before.measure, before.subject
    title = _title(before)
    slope = _slope_of(before)
    times_ns = [int(time_s * SECOND_NS) for time_s, _ in after.readings]
    values = [round(value) for _, value in after.readings]
    trend = find_trend(times_ns, values)
    if trend is None or slope.per_s <= 0:
        why = "it did not grow before" if slope.per_s <= 0 else "too few readings since"
        return MeasureVerdict(*name, "unknown", None, f"{title}: {why}", decides=trend is None)
    per_s, over_s = trend.per_hour / 3600, trend.over_ns / SECOND_NS
    p = flat_probability(slope, per_s, over_s)
    because = f"{title}: {per_s * 60:+.3g} a minute since, {slope.per_s * 60:+.3g} before"
    grown = values[-1] - values[0]
    expected = slope.per_s * over_s
    if per_s >= _STILL * slope.per_s and grown >= _FEWEST and expected >= _FEWEST:
        return MeasureVerdict(*name, "refuted", p, f"{because}: it still grows")
    if per_s < -_FLAT * slope.per_s or _falls(values):
        return MeasureVerdict(
            *name, "unknown", p, f"{because}: while it falls, growth cannot be told"
        )
    if before.exposure_s < _LEVEL_LEAST_S:
        watched = format_duration(int(before.exposure_s * SECOND_NS))
        because = f"{because}; watched for only {watched} before"
        return MeasureVerdict(*name, "unknown", p, because)
    if p <= MECHANISM_P and per_s <= _FLAT * slope.per_s:
        return MeasureVerdict(*name, "proven", p, because)
    return MeasureVerdict(*name, "unknown", p, f"{because}; too little to tell")


def _slope_of(before: Baseline) -> Slope:
    """Return the slope before; where its spread is not known it is assumed to be large."""
    per_s = before.slope_per_s or 0.0
    if before.slope_sd_per_s is None or before.block_s is None or before.blocks is None:
        return Slope(per_s, abs(per_s) / 2, max(before.exposure_s / 4, 1.0), 4)
    return Slope(per_s, before.slope_sd_per_s, before.block_s, before.blocks)


def _falls(values: list[int]) -> bool:
    """Decide whether a good part of a peak was given back."""
    peak = values[0]
    for value in values:
        peak = max(peak, value)
        if peak - value > max(_FALL * peak, _FEW):
            return True
    return False


def _judge_cost(before: Baseline, after: Aftermath) -> MeasureVerdict:
    """Show what a walk costs now; reads differ too much among themselves for a proof."""
    now = sorted(value for _, value in after.readings)
    middle = now[len(now) // 2] if now else float(after.count or 0)
    because = f"{_title(before)}: {middle * 1000:.3g} ms now, {before.count * 1000:.3g} before"
    name = before.measure, before.subject
    return MeasureVerdict(*name, "unknown", None, because, decides=False)


# -- words ---------------------------------------------------------------------------

_TITLES = {
    "unit_restarts": "restarts of {}",
    "child_failures": "failed children inside {}",
    "container_restarts": "starts of container {}",
    "cgroups_made": "cgroups made in {}",
    "zombies": "zombies",
    "oom_kills": "OOM kills in {}",
    "pegged_s": "pegged seconds of cores",
    "walk_s": "reading memory statistics",
}


def _title(before: Baseline) -> str:
    return _TITLES.get(before.measure, before.measure + " of {}").format(before.subject)


def _span(seconds: float) -> str:
    if seconds * SECOND_NS > 1000 * 24 * HOUR_NS:
        return "years"
    rounded = round(seconds) if seconds >= 10 else round(seconds, 1)
    return format_duration(int(rounded * SECOND_NS))
