"""What the times of a recurring incident have in common, and what an average would not show."""

from __future__ import annotations

import numpy as np

from nodescope.analysis.epochs import FEWEST, average_epochs, stouffer
from nodescope.analysis.window import SECOND_NS
from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Finding

SURELY = 0.05
LONGEST_NS = 31 * 86_400 * SECOND_NS  # second by second; a longer window is of a broken clock


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
    rows = np.array([(time - case.window.from_ns) // SECOND_NS for time in times], np.int64)
    most, mean = case.kernel_seconds(case.window)
    said = []
    for name, values in (
        ("kernel time of the busiest core", most),
        ("kernel time of the node on average", mean),
    ):
        found = average_epochs(values, rows)
        if found is None:
            continue
        when = f"{-found.lag_s} s before" if found.lag_s < 0 else f"{found.lag_s} s after"
        if found.p <= SURELY:
            said.append(f"{name} stands out {when} all {len(times)} times (p = {found.p:.2g})")
        else:
            said.append(f"{name} does not stand out around them (p = {found.p:.2g})")
    return said
