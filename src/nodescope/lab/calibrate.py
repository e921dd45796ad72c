"""How sure a chain may say it is: a line through what runs of the lab have shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from nodescope.diagnosis.rules.calibration import log_odds

_STEPS = 100
_DAMPING = 1.0  # of the slope towards 1: runs that all look alike say nothing of it


def fit(
    supports: Sequence[float], true: Sequence[bool], scenarios: Sequence[str]
) -> tuple[float, float]:
    """Offset and slope of the log-odds of being true, by those of support.

    Platt's scaling: one more of each kind is taken to have been seen, or a run of luck
    would make the lab certain. Twenty runs of one scenario are one witness, not twenty:
    they share the machine, the kernel and us.
    """
    x = np.array([log_odds(each) for each in supports])
    y = np.array(true, bool)
    runs = Counter(scenarios)
    weight = np.array([1 / runs[each] for each in scenarios])
    yes, no = float(weight[y].sum()), float(weight[~y].sum())
    target = np.where(y, (yes + 1) / (yes + 2), 1 / (no + 2))
    design = np.stack((np.ones(len(x)), x), axis=1)
    found, usual = np.array([0.0, 1.0]), np.array([0.0, 1.0])
    for _ in range(_STEPS):
        said = 1 / (1 + np.exp(-design @ found))
        gradient = design.T @ (weight * (said - target)) + _DAMPING * (found - usual) * (0, 1)
        spread = weight * said * (1 - said) + 1e-9
        curvature = (design.T * spread) @ design + np.diag((0, _DAMPING))
        step = np.linalg.solve(curvature, gradient)
        found = found - step * min(1.0, 2.0 / max(1e-12, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-10:
            break
    return float(found[0]), float(found[1])
