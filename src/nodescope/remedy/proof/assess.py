"""Decide whether a remedy worked: two verdicts, from the time before and the time after.

*Mechanism*: what made the trouble stopped. Proven if a node that was not mended would look
like this with a probability of at most one in a hundred (`measure_verdicts`). What the plan
stopped must be at rest; a restart refutes it. *Outcome*: resets and failed jobs became
rarer, by an exact test of the two rates, at one in twenty. Nothing is proven by what nobody
saw: after a reboot, an undone step or a lost observation both verdicts are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nodescope.analysis.exact_tests import rate_fell, rate_rose
from nodescope.analysis.recurrence import Recurrence, few_probability, time_needed
from nodescope.remedy.plan import Baseline, Plan
from nodescope.remedy.proof.aftermath import Aftermath, Afterwards
from nodescope.remedy.proof.baselines import UNEVEN_WEEKS, WEEK_S
from nodescope.remedy.proof.measure_verdicts import (
    DIRECT,
    Answer,
    MeasureVerdict,
    judge_measure,
)

OUTCOME_P = 0.05
_SHORTFALL = 0.05  # of what was predicted, that may be missing
_HOUR_S = 3600.0
_MEASURED_BY = {"restarts": ("unit_restarts", "container_restarts"), "oom_kills": ("oom_kills",)}


@dataclass(frozen=True, slots=True)
class MechanismVerdict:
    """Whether what made the trouble stopped; `p`: an unmended node looks like this so often."""

    verdict: Answer
    p: float | None
    because: str
    measures: tuple[MeasureVerdict, ...] = ()


@dataclass(frozen=True, slots=True)
class OutcomeVerdict:
    """Whether the trouble itself became rarer, and what is missing to know it."""

    verdict: Answer
    p: float | None
    because: str
    node_hours_needed: float | None = None  # more, if nothing happens; None: cannot be told


@dataclass(frozen=True, slots=True)
class PredictionVerdict:
    """What a plan predicted beside what came; `came` is None if nobody measured it."""

    what: str
    low: float
    high: float
    measured: float | None
    came: bool | None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The answer of `fix validate`."""

    mechanism: MechanismVerdict
    outcome: OutcomeVerdict
    predictions: tuple[PredictionVerdict, ...] = field(default=())
    elapsed_s: float = 0.0

    @property
    def proven(self) -> bool:
        """Return whether the mechanism is proven and nothing that was predicted failed to come."""
        return self.mechanism.verdict == "proven" and all(
            each.came is not False for each in self.predictions
        )


def assess(plan: Plan, before: Sequence[Baseline], after: Afterwards) -> Verdicts:
    """Return the verdicts on a plan that was applied."""
    spoiled = _spoiled(after)
    if spoiled:
        mechanism = MechanismVerdict("unknown", None, spoiled)
        outcome = OutcomeVerdict("unknown", None, spoiled)
    else:
        mechanism = _judge_mechanism(before, after)
        outcome = _judge_outcome(before, after)
    return Verdicts(mechanism, outcome, tuple(_judge_predictions(plan, after)), after.elapsed_s)


def _spoiled(after: Afterwards) -> str:
    """Return why nothing can be concluded; empty if something can."""
    if after.undone:
        return after.undone
    if after.rebooted:
        return (
            "the node was rebooted since: zombies begin at 0 and loops anew, so silence "
            "proves nothing"
        )
    return after.lost


# -- mechanism -----------------------------------------------------------------------


def _judge_mechanism(before: Sequence[Baseline], after: Afterwards) -> MechanismVerdict:
    again = [each for each in after.sources if each.at_rest is False]
    if again:
        names = "; ".join(f"{each.name} runs again: {each.seen}" for each in again)
        return MechanismVerdict("refuted", None, names)
    unseen = [each for each in after.sources if each.at_rest is None]
    if unseen:
        names = "; ".join(f"{each.name}: {each.seen}" for each in unseen)
        return MechanismVerdict("unknown", None, f"not seen: {names}")
    judged = [
        judge_measure(each, _of(each, after.measures), at_rest=_rests(each, after))
        for each in before
        if each.role == "mechanism"
    ]
    return _combine(judged)


def _rests(baseline: Baseline, after: Afterwards) -> bool:
    """Decide whether nobody waits to start it again: it is at rest, or ran all the time."""
    # What is killed or restarted is named, or its cgroup is named after it.
    if baseline.subject.rpartition("/")[2] in after.running:
        return True
    if baseline.measure in ("unit_restarts", "child_failures", "container_restarts"):
        return any(each.name == baseline.subject for each in after.sources)
    return bool(after.sources)


def _of(baseline: Baseline, measures: Iterable[Aftermath]) -> Aftermath | None:
    wanted = baseline.measure, baseline.subject
    return next((each for each in measures if (each.measure, each.subject) == wanted), None)


def _combine(judged: Sequence[MeasureVerdict]) -> MechanismVerdict:
    """Return one verdict of all measures.

    What the plan acts on directly must all be proven, as far as it was observed; one of them
    must have been. What only follows from it (zombies that
    no longer grow, pegged cores) may refute; it proves only where there is nothing direct.
    """
    every = tuple(judged)
    refuted = [each for each in judged if each.verdict == "refuted"]
    if refuted:
        return MechanismVerdict("refuted", _worst(refuted), _words(refuted), every)
    direct = [each for each in judged if each.measure in DIRECT]
    deciding = [each for each in direct if each.p is not None] or direct
    deciding = deciding or [each for each in judged if each.decides]
    if not deciding:
        because = "nothing of the mechanism was counted before the plan: there is no comparison"
        return MechanismVerdict("unknown", None, because, every)
    open_ = [each for each in deciding if each.verdict != "proven"]
    verdict: Answer = "unknown" if open_ else "proven"
    return MechanismVerdict(verdict, _worst(deciding), _words(open_ or deciding), every)


def _worst(judged: Iterable[MeasureVerdict]) -> float | None:
    known = [each.p for each in judged if each.p is not None]
    return max(known) if known else None


def _words(judged: Iterable[MeasureVerdict]) -> str:
    return "; ".join(each.because for each in judged)


# -- outcome -------------------------------------------------------------------------


def _judge_outcome(before: Sequence[Baseline], after: Afterwards) -> OutcomeVerdict:
    known = [each for each in before if each.role == "outcome" and each.exposure_s > 0]
    pairs = [(each, seen) for each in known if (seen := _of(each, after.measures)) is not None]
    pairs = [(each, seen) for each, seen in pairs if seen.count is not None and seen.observed_s > 0]
    if not known:
        because = "neither resets nor failed jobs were recorded before the plan"
        return OutcomeVerdict("unknown", None, because)
    if not pairs:
        return OutcomeVerdict("unknown", None, "nothing was recorded since the plan")
    limit = OUTCOME_P / len(pairs)
    found = [_compare(each, seen, limit) for each, seen in pairs]
    rose = [each for each in found if each.verdict == "refuted"]
    fell = [each for each in found if each.verdict == "proven"]
    if rose:
        return rose[0]
    if fell:
        return min(fell, key=lambda each: each.p or 0.0)
    needed = [each.node_hours_needed for each in found if each.node_hours_needed is not None]
    because = "; ".join(each.because for each in found)
    p = min(each.p for each in found if each.p is not None)
    return OutcomeVerdict("unknown", p, because, min(needed) if needed else None)


def _compare(baseline: Baseline, seen: Aftermath, limit: float) -> OutcomeVerdict:
    """Compare two rates. The event that led to the plan is not counted: it chose the moment."""
    first = max(0, round(baseline.count) - 1)
    later = round(seen.count or 0)
    what = baseline.measure.replace("_", " ")
    fell = _fell_probability(baseline, first, later, seen.observed_s)
    rose = rate_rose(first, baseline.exposure_s, later, seen.observed_s)
    words = (
        f"{what}: {later} in {_hours(seen.observed_s)} since, {first} in "
        f"{_hours(baseline.exposure_s)} before (without the one that led to the plan)"
    )
    if fell <= limit:
        return OutcomeVerdict("proven", fell, words, 0.0)
    if rose <= limit and later > 1:
        return OutcomeVerdict("refuted", fell, f"{words}: they became more")
    if first == 0:
        before = "one, which may have led to it," if round(baseline.count) else "none"
        words = f"{what}: {before} was recorded before the plan; no rate is known"
        return OutcomeVerdict("unknown", fell, words)
    more_s = _exposure_left(baseline, first, later, seen.observed_s, limit)
    return OutcomeVerdict("unknown", fell, words, None if more_s is None else more_s / _HOUR_S)


def _fell_probability(baseline: Baseline, first: int, later: int, after_s: float) -> float:
    """Return P(so few after | the rate is the same), where some weeks are worse than others."""
    alpha = UNEVEN_WEEKS if baseline.overdispersion is None else baseline.overdispersion
    weekly = sum(alpha * min(1.0, WEEK_S / each) for each in (baseline.exposure_s, after_s))
    known = Recurrence(first, baseline.exposure_s, weekly)
    return max(
        rate_fell(first, baseline.exposure_s, later, after_s),
        few_probability(known, later, after_s),
    )


def _exposure_left(
    baseline: Baseline, first: int, later: int, after_s: float, limit: float
) -> float | None:
    """Return how much more exposure without any event shows that the rate fell."""
    total_s = time_needed(
        after_s, lambda each_s: _fell_probability(baseline, first, later, each_s), limit
    )
    return None if total_s is None else total_s - after_s


def _hours(seconds: float) -> str:
    return f"{seconds / _HOUR_S:.3g} node-hours"


# -- predictions ---------------------------------------------------------------------


def _judge_predictions(plan: Plan, after: Afterwards) -> Iterable[PredictionVerdict]:
    """Yield each predicted quantity once: steps that free the same thing add up."""
    predicted = [each for step in plan.steps for each in step.predicts]
    for what in dict.fromkeys(each.what for each in predicted):
        some = [each for each in predicted if each.what == what]
        low, high = sum(each.low for each in some), sum(each.high for each in some)
        measured = _measured(what, after)
        came = None
        if measured is not None:
            came = measured <= high if what in _MEASURED_BY else measured >= low * (1 - _SHORTFALL)
        yield PredictionVerdict(what, low, high, measured, came)


def _measured(what: str, after: Afterwards) -> float | None:
    """Return what came of a predicted quantity; None if nobody measured it."""
    if after.rebooted:
        return None
    if what == "zombies":
        level = next((each for each in after.measures if each.measure == "zombies"), None)
        if level is None or not level.readings or after.zombies_before is None:
            return None
        return after.zombies_before - min(value for _, value in level.readings)
    counts = [each.count for each in after.measures if each.measure in _MEASURED_BY.get(what, ())]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
