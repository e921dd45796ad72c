"""Simulated nodes that were not mended, and some that were: how often a verdict is wrong.

False *mechanism stopped*: 1,000 nodes that go on as before, of thirteen kinds of loop and leak,
each watched for a time drawn between two minutes and an hour after a plan. False *outcome
improved*: incidents that go on, in steady and in uneven weeks, the plan made at any time or
because one had just happened. False positives of experiments: arms that do nothing, on nodes
alike and on nodes of which some fail far more often, looked at every day. Power: the
same with nodes that were mended.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable

from benchmarks import proof_nodes
from benchmarks.proof_nodes import LEAKS, LOOPS, Trial, log_uniform, make_leak, make_loop
from benchmarks.results import Bar, Grid, Options, Result
from nodescope.analysis.exact_tests import binomial_below, clopper_pearson
from nodescope.analysis.sequential import STOP_AT, Draw, log_e_value, log_urn_e_value
from nodescope.remedy.experiment.design import CandidateNode, design_experiment
from nodescope.remedy.plan import Plan
from nodescope.remedy.proof.aftermath import Afterwards, SourceState
from nodescope.remedy.proof.assess import assess

SEED = 20_261_117
NODES = 1000
MECHANISM_BAR, OUTCOME_BAR, EXPERIMENT_BAR = 0.01, 0.05, 0.05
_PLAN = Plan("node", "boot", 0, 0, (), ())


def run(options: Options) -> Result:
    count = 200 if options.quick else NODES
    chance = random.Random(SEED)
    mechanism, mechanism_grid = _mechanism(chance, count)
    outcome, outcome_grid = _outcome(chance, count)
    experiments, experiment_grid = _experiments(chance, count // 2)
    return Result(
        (mechanism, outcome, experiments),
        (mechanism_grid, outcome_grid, experiment_grid),
        notes=(
            f"seed {SEED}; intervals are exact (Clopper–Pearson, 95 %)",
            "the beta-binomial process and the fixed test take all events; the urn decides",
        ),
    )


def _share(count: int, total: int) -> str:
    low, high = clopper_pearson(count, total)
    return f"{count / total:.2%} ({count} of {total}; {low:.2%} to {high:.2%})"


# -- mechanism -----------------------------------------------------------------------------


def _mechanism(chance: random.Random, count: int) -> tuple[Bar, Grid]:
    families: dict[str, Callable[..., Trial | None]] = dict.fromkeys(LOOPS, make_loop)
    families |= dict.fromkeys(LEAKS, make_leak)
    names = list(families)
    false: Counter[str] = Counter()
    unfixed: Counter[str] = Counter()
    while unfixed.total() < count:
        name = names[unfixed.total() % len(names)]
        trial = families[name](chance, name, log_uniform(chance, 120, 3600), fixed=False)
        if trial is not None:
            unfixed[name] += 1
            false[name] += _mechanism_verdict(trial) == "proven"
    rows = []
    for name, make in families.items():
        powers = [_power(chance, name, make, after_s, count // 10) for after_s in (120, 600, 3600)]
        rows.append((name, f"{false[name]} of {unfixed[name]}", *powers))
    total = false.total()
    bar = Bar(
        "false *mechanism stopped*", f"≤ {MECHANISM_BAR:.0%}", _share(total, count),
        total <= MECHANISM_BAR * count,
    )  # fmt: skip
    head = ("kind of loop or leak", "false", "proven after 2 min", "10 min", "1 h")
    return bar, Grid("Mechanism: nodes that were not mended, and power on mended ones", head,
                     tuple(rows))  # fmt: skip


def _mechanism_verdict(trial: Trial) -> str:
    sources = (SourceState("unit", "it", True, "inactive"),) if trial.at_rest else ()
    after = Afterwards(0, int(trial.after.observed_s * 1e9), (trial.after,), sources)
    return assess(_PLAN, (trial.before,), after).mechanism.verdict


def _power(
    chance: random.Random, name: str, make: Callable[..., Trial | None], after_s: float, count: int
) -> str:
    tried = proven = 0
    while tried < count:
        trial = make(chance, name, after_s, fixed=True)
        if trial is not None:
            tried += 1
            proven += _mechanism_verdict(trial) == "proven"
    return f"{proven / tried:.0%}"


# -- outcome -------------------------------------------------------------------------------


def _outcome(chance: random.Random, count: int) -> tuple[Bar, Grid]:
    rows = []
    worst = 0
    for clustered in (False, True):
        for chosen in (False, True):
            kind = f"{'uneven' if clustered else 'steady'} weeks, plan " + (
                "made because of an incident" if chosen else "made at any time"
            )
            shares = [
                sum(
                    _outcome_verdict(chance, clustered=clustered, chosen=chosen, ratio=ratio)
                    for _ in range(count)
                )
                for ratio in (1.0, 0.2, 0.05)
            ]
            worst = max(worst, shares[0])
            rows.append((kind, *(f"{share / count:.1%}" for share in shares)))
    bar = Bar(
        "false *outcome improved*, the worst of four kinds", f"≤ {OUTCOME_BAR:.0%}",
        _share(worst, count), worst <= OUTCOME_BAR * count,
    )  # fmt: skip
    head = ("incidents", "false", "power, 5 times fewer", "20 times fewer")
    return bar, Grid("Outcome: incidents before and after", head, tuple(rows))


def _outcome_verdict(chance: random.Random, *, clustered: bool, chosen: bool, ratio: float) -> bool:
    before, after = proof_nodes.make_outcome(
        chance, clustered=clustered, chosen=chosen, ratio=ratio
    )
    since = Afterwards(0, int(after.observed_s * 1e9), (after,))
    return assess(_PLAN, (before,), since).outcome.verdict == "proven"


# -- experiments ---------------------------------------------------------------------------


def _experiments(chance: random.Random, count: int) -> tuple[Bar, Grid]:
    rows = []
    worst = 0
    for frailty in (0.0, 1.0, 2.0):
        for ratio in (1.0, 0.5, 0.2):
            tries = count if ratio == 1.0 else count // 4
            found = [_experiment(chance, frailty, ratio) for _ in range(tries)]
            urn, mixture, fixed = (sum(each[at] for each in found) for at in range(3))
            if ratio == 1.0:
                worst = max(worst, urn)
            rows.append(
                (f"{frailty:g}", f"{ratio:g}", *(f"{each / tries:.1%}" for each in
                                                 (urn, mixture, fixed)))
            )  # fmt: skip
    bar = Bar(
        "false positives of experiments with daily looks, the worst of three frailties",
        f"≤ {EXPERIMENT_BAR:.0%}", _share(worst, count),
        worst <= EXPERIMENT_BAR * count,
    )  # fmt: skip
    head = ("frailty (CV of rates)", "rate ratio", "urn of first events (decides)",
            "beta-binomial, all events", "fixed test, looked at")  # fmt: skip
    return bar, Grid("Experiments: arms called helpful within 60 days", head, tuple(rows))


def _experiment(chance: random.Random, frailty: float, ratio: float) -> tuple[bool, bool, bool]:
    """Return whether each process calls the arm helpful at any look."""
    size = round(log_uniform(chance, 16, 300))
    nodes = [
        CandidateNode(f"n{at}", chance.choice("abc"), chance.uniform(0, 700)) for at in range(size)
    ]
    design = design_experiment(nodes, ["arm"], 0.2, 0.8, chance.randrange(10**9))
    shape = 1 / frailty**2 if frailty else None
    rate = log_uniform(chance, 0.2, 4) / 60  # events a day of a node
    happened = []
    for each in design.assignments:
        own = rate * (chance.gammavariate(shape, 1 / shape) if shape else 1)
        own *= ratio if each.arm == "arm" else 1
        at = 0.0
        while own > 0 and (at := at + chance.expovariate(own)) < 60:
            happened.append((at, each))
    happened.sort(key=lambda each: each[0])
    share = design.count("arm") / size
    left = Counter((each.stratum, each.arm) for each in design.assignments)
    failed: set[str] = set()
    draws: list[Draw] = []
    treated = number = 0
    urn = mixture = fixed = False
    for day in range(60):
        for _, each in (one for one in happened if day <= one[0] < day + 1):
            number += 1
            treated += each.arm == "arm"
            if each.node not in failed:
                failed.add(each.node)
                at_risk = left[each.stratum, "arm"], left[each.stratum, "control"]
                draws.append(Draw(*at_risk, each.arm == "arm"))
                left[each.stratum, each.arm] -= 1
        mixture = mixture or log_e_value(treated, number, share) >= math.log(STOP_AT)
        fixed = fixed or (number > 0 and binomial_below(treated, number, share) <= 0.05)
        urn = urn or log_urn_e_value(draws) >= math.log(STOP_AT)
    return urn, mixture, fixed
