"""From how well a chain is supported to how sure it is, as the lab has shown.

The links of a chain are seen in one incident: they are not independent, so their product
says too little of a long chain. `python -m benchmarks lab` runs every scenario for real and
notes the support of each chain that names a cause, true or not; a line through the log-odds
(`lab.calibrate`) turns support into confidence. `tools/judge-lab` fits it anew to recordings
that were kept. What the fit stands on is in docs/diagnosis.md under *Confidence*.
"""

from __future__ import annotations

import math

# From tests/diagnosis/bundles and the first run of each scenario of 2026-11-17.
OFFSET, SLOPE = 1.357, 0.692


def calibrated(support: float, offset: float = OFFSET, slope: float = SLOPE) -> float:
    """How often chains with this support were true."""
    return 1 / (1 + math.exp(-(offset + slope * log_odds(support))))


def log_odds(support: float) -> float:
    """Return the log-odds of a probability, bounded short of certainty either way."""
    bounded = min(max(support, 1e-6), 1 - 1e-6)
    return math.log(bounded / (1 - bounded))
