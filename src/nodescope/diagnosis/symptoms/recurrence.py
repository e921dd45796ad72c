"""Find what the times of a recurring incident share, beyond what an average shows.

All that the node counts and gauges is laid around all of the times together. Of so many
metrics some stand out by chance: Benjamini–Hochberg holds the share of those at about 5 %.
Those that stand out and have a cycle are asked whether they do so beyond it, and
Benjamini–Hochberg is applied to these answers again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from nodescope.analysis.cycles import Cycle, find_cycle, find_untold
from nodescope.analysis.epochs import FEWEST, Epoch, Ranked, average_epochs, stouffer, whole_events
from nodescope.analysis.metrics import read_metrics
from nodescope.analysis.statistics import adjust
from nodescope.arrays import F64, I64
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Finding
from nodescope.numbering import distinct
from nodescope.quantities import DAY_NS, SECOND_NS

SURELY = 0.05
LISTED = 6
NAMED = 3  # of those that follow the clock
ALL_METRICS_NS = 4 * DAY_NS  # in longer windows only the kernel's time: memory
LONGEST_NS = 31 * DAY_NS  # a longer window is of a broken clock
_BUSIEST, _NODE = "kernel time of the busiest core", "kernel time of the node on average"


@dataclass(slots=True)
class _Shared:
    """The measurements around the times of one finding."""

    seconds: I64  # of the window; some may lie outside of it
    whole: int | None = None  # of these: with all lags in the recording; unknown without metrics
    untold_s: int | None = None  # a period that the times keep, too seldom seen to tell
    epochs: dict[str, Epoch] = field(default_factory=dict)
    cycles: dict[str, Cycle] = field(default_factory=dict)  # of those that stand out

    def take(self, name: str, metric: Ranked) -> None:
        """One metric more."""
        if not metric.tells:
            return
        whole = len(whole_events(metric, self.seconds))
        if self.whole is None or whole > self.whole:  # a metric may have gaps of its own
            self.whole, self.untold_s = whole, find_untold(metric, self.seconds)
        epoch = average_epochs(metric, self.seconds)
        if epoch is None:
            return
        self.epochs[name] = epoch
        cycle = find_cycle(metric, self.seconds, epoch) if epoch.p <= SURELY else None
        if cycle is not None:
            self.cycles[name] = cycle


def describe_recurrence(case: Case, findings: Sequence[Finding]) -> None:
    """Say of each what holds of all its times together; nothing of one time alone."""
    recurring = {
        number: _Shared(_times(case, finding))
        for number, finding in enumerate(findings)
        if len(finding.repeats) + 1 >= FEWEST
    }
    if recurring and case.window.length_ns <= LONGEST_NS:
        for name, values in _metrics(case):
            metric = Ranked(values)  # once, whoever recurs
            for shared in recurring.values():
                shared.take(name, metric)
    for number, finding in enumerate(findings):
        finding.recurring = _describe(recurring[number]) if number in recurring else []
        finding.recurring += _describe_task(finding)


def _times(case: Case, finding: Finding) -> I64:
    times = [finding.symptom.time_ns, *finding.repeats]
    return distinct(np.array([(at - case.window.from_ns) // SECOND_NS for at in times], np.int64))


def _metrics(case: Case) -> Iterator[tuple[str, F64]]:
    seconds = case.kernel_seconds(case.window)
    yield _BUSIEST, seconds.most
    yield _NODE, seconds.mean
    if case.window.length_ns <= ALL_METRICS_NS:
        yield from read_metrics(case.recording, case.window)


def _describe(shared: _Shared) -> list[str]:
    """The kernel's time either way; of all else what stands out, the clearest first."""
    out = _surely({name: epoch.p for name, epoch in shared.epochs.items()})
    cyclic = {name: each for name, each in shared.cycles.items() if name in out}
    beyond = _surely({name: each.beyond.p for name, each in cyclic.items()})
    clear = {
        name: cyclic[name].beyond if name in cyclic else epoch
        for name, epoch in shared.epochs.items()
        if name in out and (name not in cyclic or name in beyond)
    }
    first = [name for name in (_BUSIEST, _NODE) if name in shared.epochs]
    others = [name for name in clear if name not in first]
    others.sort(key=lambda name: -abs(clear[name].average))
    said = []
    for name in [*first, *others[:LISTED]]:
        if name in clear:
            said.append(_clear(name, clear[name], cyclic.get(name), len(shared.seconds)))
        elif name not in out:
            p = shared.epochs[name].p
            said.append(f"{name} does not stand out around them (p = {p:.2g})")
    said += _with_the_clock({name: cyclic[name] for name in cyclic if name not in beyond})
    if shared.epochs:
        more = f" ({len(others) - LISTED} not listed)" if len(others) > LISTED else ""
        stand = "stands" if len(clear) == 1 else "stand"
        said.append(
            f"{len(shared.epochs)} metrics were looked at, {len(clear)} of them {stand} out{more}"
        )
    return [*said, *_limits(shared, bool(clear))]


def _surely(p: dict[str, float]) -> set[str]:
    q = adjust(np.array(list(p.values())), len(p))
    return {name for name, each in zip(p, q.tolist(), strict=True) if each <= SURELY}


def _clear(name: str, shown: Epoch, cycle: Cycle | None, times: int) -> str:
    way = "" if shown.average > 0 else ", being low,"
    if shown.unusual == times:
        which = f"all {times} times"
    elif 2 * shown.unusual >= times:
        which = f"{shown.unusual} of the {times} times"
    else:
        which = f"the {times} times on average"
    more = "" if cycle is None else f", beyond its {_cycle(cycle.period_s)}"
    return f"{name}{way} stands out {_when(shown.lag_s)} {which}{more} (p = {shown.p:.2g})"


def _when(lag_s: int) -> str:
    if lag_s == 0:
        return "in the second of"
    return f"{-lag_s} s before" if lag_s < 0 else f"{lag_s} s after"


def _cycle(period_s: int) -> str:
    return "hourly cycle" if period_s == 3600 else f"cycle of {period_s // 60} min"


def _with_the_clock(cyclic: dict[str, Cycle]) -> Iterator[str]:
    """Name the metrics that stand out by the clock anyway, or may do so."""
    for period_s in sorted({each.period_s for each in cyclic.values()}):
        alike = {name: each.beyond.p for name, each in cyclic.items() if each.period_s == period_s}
        every = f"every {_span(period_s)}"
        if only := [name for name, p in alike.items() if p > SURELY]:
            stand = "stands out only as it does" if len(only) == 1 else "stand out only as they do"
            yield f"{_listed(only)} {stand} {every}, incident or not"
        if unsure := [name for name, p in alike.items() if p <= SURELY]:
            do = "it does" if len(unsure) == 1 else "they do"
            yield (
                f"{_listed(unsure)} may stand out more than {do} {every} anyway: "
                "too little was recorded to tell"
            )


def _span(period_s: int) -> str:
    return {60: "minute", 3600: "hour"}.get(period_s, f"{period_s // 60} min")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _limits(shared: _Shared, any_clear: bool) -> Iterator[str]:
    """Name what these averages could not see."""
    times = len(shared.seconds)
    if shared.whole is not None and shared.whole < times:
        yield (
            f"{times - shared.whole} of the {times} times lie too near an end of the recording, "
            "or a gap in it, to be averaged"
        )
    if any_clear and shared.untold_s is not None:
        yield (
            f"they come at the same point of every {_span(shared.untold_s)}, which was seen too "
            "few times without them: what merely follows the clock cannot be told from a cause"
        )


def _describe_task(finding: Finding) -> Iterator[str]:
    """The p-values are of those times that were compared, and at which it had more."""
    rose, times = len(finding.p_values), len(finding.repeats) + 1
    if rose < 2:
        return
    p = stouffer(finding.p_values)
    which = f"all {times} times" if rose == times else f"{rose} of the {times} times"
    rest = "" if rose == times else " (at the others less, or it was not compared)"
    sure = "< 1e-12" if p < 1e-12 else f"= {p:.1g}"
    clearly = "" if p <= SURELY else ", which is no clear rise"
    yield (
        f"at {which} the task had more of the node than in up to half an hour before{rest}; "
        f"together p {sure}{clearly} (Stouffer)"
    )
