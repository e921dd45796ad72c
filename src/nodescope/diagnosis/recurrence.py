"""What the times of a recurring incident have in common, and what an average would not show.

All that the node counts and gauges is laid around all of the times together. Of so many
metrics some always stand out by chance: Benjamini–Hochberg holds the share of those at 5 %.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nodescope.analysis.epochs import FEWEST, Epoch, average_epochs, stouffer
from nodescope.analysis.metrics import F64, read_metrics
from nodescope.analysis.statistics import adjust
from nodescope.analysis.window import SECOND_NS
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Finding

SURELY = 0.05
LISTED = 6
LONGEST_NS = 4 * 86_400 * SECOND_NS  # second by second; a longer window is of a broken clock
_BUSIEST, _NODE = "kernel time of the busiest core", "kernel time of the node on average"


def describe_recurrence(case: Case, finding: Finding) -> list[str]:
    """A line for each thing that holds of all the times together; none for one time alone."""
    times = [finding.symptom.time_ns, *finding.repeats]
    said = []
    if len(times) >= FEWEST and case.window.length_ns <= LONGEST_NS:
        said += _around_events(case, times)
    if len(finding.p_values) > 1:
        p = stouffer(finding.p_values)
        said.append(
            f"the task's share was above its half hour before in {len(finding.p_values)} of them "
            f"taken together: p {'< 1e-12' if p < 1e-12 else f'= {p:.1g}'} (Stouffer)"
        )
    return said


def _around_events(case: Case, times: list[int]) -> list[str]:
    """The kernel's time either way; of all else what stands out, the clearest first."""
    rows = np.array([(time - case.window.from_ns) // SECOND_NS for time in times], np.int64)
    found = {
        name: epoch
        for name, values in _metrics(case)
        if (epoch := average_epochs(values, rows)) is not None
    }
    if not found:
        return []
    q = adjust(np.array([epoch.p for epoch in found.values()]), len(found))
    clear = {name for name, each in zip(found, q.tolist(), strict=True) if each <= SURELY}
    said = [
        _clear(name, found[name], len(times))
        if name in clear
        else f"{name} does not stand out around them (p = {found[name].p:.2g})"
        for name in (_BUSIEST, _NODE)
        if name in found
    ]
    others = sorted(clear - {_BUSIEST, _NODE}, key=lambda name: -abs(found[name].average))
    said += [_clear(name, found[name], len(times)) for name in others[:LISTED]]
    more = f" (and {len(others) - LISTED} more)" if len(others) > LISTED else ""
    said.append(f"{len(found)} metrics were looked at, {len(clear)} of them stand out{more}")
    return said


def _metrics(case: Case) -> Iterator[tuple[str, F64]]:
    most, mean = case.kernel_seconds(case.window)
    yield _BUSIEST, most
    yield _NODE, mean
    yield from read_metrics(case.segments, case.window)


def _clear(name: str, epoch: Epoch, times: int) -> str:
    when = f"{-epoch.lag_s} s before" if epoch.lag_s < 0 else f"{epoch.lag_s} s after"
    way = "" if epoch.average > 0 else ", being low,"
    return f"{name}{way} stands out {when} all {times} times (p = {epoch.p:.2g})"
