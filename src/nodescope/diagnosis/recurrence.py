"""What the times of a recurring incident have in common, and what an average would not show.

All that the node counts and gauges is laid around all of the times together. Of so many
metrics some stand out by chance: Benjamini–Hochberg holds the share of those at about 5 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nodescope.analysis.epochs import FEWEST, I64, Epoch, average_epochs, stouffer
from nodescope.analysis.metrics import F64, read_metrics
from nodescope.analysis.statistics import adjust
from nodescope.analysis.window import SECOND_NS
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Finding

SURELY = 0.05
LISTED = 6
ALL_METRICS_NS = 4 * 86_400 * SECOND_NS  # in longer windows only the kernel's time: memory
LONGEST_NS = 31 * 86_400 * SECOND_NS  # a longer window is of a broken clock
_BUSIEST, _NODE = "kernel time of the busiest core", "kernel time of the node on average"


def describe_recurrence(case: Case, findings: Sequence[Finding]) -> None:
    """Say of each what holds of all its times together; nothing of one time alone."""
    times = {
        number: np.array([(at - case.window.from_ns) // SECOND_NS for at in all_times], np.int64)
        for number, finding in enumerate(findings)
        if len(all_times := [finding.symptom.time_ns, *finding.repeats]) >= FEWEST
    }
    epochs = _around_events(case, times)
    for number, finding in enumerate(findings):
        finding.recurring = _describe(epochs.get(number, {}))
        if len(finding.p_values) > 1:
            p = stouffer(finding.p_values)
            together = f"{len(finding.p_values)} of them taken together"
            finding.recurring.append(
                f"the task's share was above its half hour before in {together}: "
                f"p {'< 1e-12' if p < 1e-12 else f'= {p:.1g}'} (Stouffer)"
            )


def _around_events(case: Case, times: dict[int, I64]) -> dict[int, dict[str, Epoch]]:
    """Each metric is read once, whoever recurs."""
    found: dict[int, dict[str, Epoch]] = {number: {} for number in times}
    if not times or case.window.length_ns > LONGEST_NS:
        return found
    for name, values in _metrics(case):
        for number, seconds in times.items():
            epoch = average_epochs(values, seconds)
            if epoch is not None:
                found[number][name] = epoch
    return found


def _metrics(case: Case) -> Iterator[tuple[str, F64]]:
    most, mean = case.kernel_seconds(case.window)
    yield _BUSIEST, most
    yield _NODE, mean
    if case.window.length_ns <= ALL_METRICS_NS:
        yield from read_metrics(case.segments, case.window)


def _describe(found: dict[str, Epoch]) -> list[str]:
    """The kernel's time either way; of all else what stands out, the clearest first."""
    if not found:
        return []
    q = adjust(np.array([epoch.p for epoch in found.values()]), len(found))
    clear = {name for name, each in zip(found, q.tolist(), strict=True) if each <= SURELY}
    said = [
        _clear(name, found[name])
        if name in clear
        else f"{name} does not stand out around them (p = {found[name].p:.2g})"
        for name in (_BUSIEST, _NODE)
        if name in found
    ]
    others = sorted(clear - {_BUSIEST, _NODE}, key=lambda name: -abs(found[name].average))
    said += [_clear(name, found[name]) for name in others[:LISTED]]
    more = f" (and {len(others) - LISTED} more)" if len(others) > LISTED else ""
    said.append(f"{len(found)} metrics were looked at, {len(clear)} of them stand out{more}")
    return said


def _clear(name: str, epoch: Epoch) -> str:
    when = f"{-epoch.lag_s} s before" if epoch.lag_s < 0 else f"{epoch.lag_s} s after"
    way = "" if epoch.average > 0 else ", being low,"
    return f"{name}{way} stands out {when} all {epoch.events} times (p = {epoch.p:.2g})"
