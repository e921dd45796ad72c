"""The step from support to confidence, fitted to the committed recordings of the lab
(tests/diagnosis/bundles): anybody can do it again.

Each bundle is diagnosed by the code of now. Every chain that names a cause, of whatever rank,
counts as true or false by the truth beside the bundle; runs of one scenario are one witness.

How it could be fooled: the rules were tried on these recordings, so few or none are false. The fit
then says how many kinds of incidents were solved, and not how often a confidence is too high.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.results import Bar, Grid, Options, Result
from nodescope.diagnosis.rules.calibration import OFFSET, SLOPE, calibrated
from nodescope.lab.calibrate import fit
from nodescope.lab.score import list_causes, solve
from nodescope.lab.truth_file import read_truth

BUNDLES = Path("tests/diagnosis/bundles")
NEAR = 0.01  # of the figures in use: a rule that changes moves them
_SHOWN = (0.3, 0.5, 0.7, 0.9, 0.95)


def run(_: Options) -> Result:
    bundles = sorted(BUNDLES.glob("*.bundle"))
    with ProcessPoolExecutor() as pool:
        told = [each for found in pool.map(_judge, bundles) for each in found]
    supports, true, scenarios = zip(*told, strict=True)
    offset, slope = fit(supports, true, scenarios)
    same = abs(offset - OFFSET) <= NEAR and abs(slope - SLOPE) <= NEAR
    bars = (
        Bar("offset and slope in use are those fitted", f"{OFFSET}, {SLOPE}",
            f"{offset:.3f}, {slope:.3f}", same),
        Bar("chains that name a false cause", "", f"{true.count(False)} of {len(told)}", None),
    )  # fmt: skip
    rows = tuple((f"{each:.0%}", f"{calibrated(each, offset, slope):.0%}") for each in _SHOWN)
    note = f"{len(told)} chains of {len(set(scenarios))} scenarios in {len(bundles)} recordings."
    figures = {"offset": offset, "slope": slope, "chains": [list(each) for each in told]}
    grid = Grid("Confidence by support", ("support", "confidence"), rows)
    return Result(bars, (grid,), (note,), figures)


def _judge(bundle: Path) -> list[tuple[float, bool, str]]:
    """Return support, truth and scenario of each chain that names a cause."""
    truth = read_truth(bundle.with_suffix(""))
    causes = list_causes(truth, solve(bundle))
    return [(support, true, truth.scenario) for support, true in causes]
