"""Two flame graphs as one: each path with its samples now, and what the baseline had.

`base` is scaled to the length of the window. `p` takes every sample for itself (the exact
test between two Poisson counts): it colours paths, and `/api/compare` knows of bursts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodescope.analysis.flame_rows import FlameNames, FlameRows, whole
from nodescope.analysis.statistics import binomial_tails
from nodescope.arrays import F64, I64, U64
from nodescope.web.answers.flames import DifferenceDocument, Forest, Node, Painter, flame_document
from nodescope.web.question import Values

SURE = 0.01
FACTOR = 1.25


@dataclass(frozen=True)
class Difference:
    """A window's paths and a baseline's; so much of each path may be `hidden` in the baseline."""

    now: FlameRows
    before: FlameRows
    scale: float  # how long the window is, in baselines
    hidden: float = 0.0

    def document(self, names: FlameNames, values: Values) -> DifferenceDocument:
        """The flame graph's document; nodes also have `base`, `p` and `status`."""
        now, before = self.now, self.before
        path, place = np.unique(np.concatenate((now.path, before.path)), return_inverse=True)
        first, second = place[: len(now.path)], place[len(now.path) :]
        there, usual = np.zeros(len(path), np.int64), np.zeros(len(path), np.int64)
        there[first], usual[second] = now.total, before.total
        rows = FlameRows(
            path,
            _either(path, (second, before.caller), (first, now.caller)),
            _either(path, (second, before.frame), (first, now.frame)),
            there,
            now.rest,
        )
        expected = usual * np.float64(self.scale)
        painter = _Painter(expected, *self._judge(there, usual))
        forest = Forest.of(rows, np.maximum(there, np.rint(expected).astype(np.int64)))
        document = flame_document(rows, names, values, forest, painter)
        total = whole(before)
        document["root"].setdefault("base", round(total * self.scale, 3))
        return {**document, "base_total": total, "base_scale": self.scale}

    def _judge(self, there: I64, usual: I64) -> tuple[F64, list[str]]:
        """How surely each differs, and in which way."""
        now, chance = there.astype(np.float64), np.full(len(there), self.scale / (1 + self.scale))
        perhaps = np.where(usual == 0, np.floor(self.hidden), usual)
        below, above = binomial_tails(now, now + perhaps, chance)
        p = np.minimum(1.0, 2 * np.minimum(below, above))
        expected = perhaps * np.float64(self.scale)
        sure = p < SURE
        missing = (usual == 0) & (sure | (self.hidden == 0))
        status = np.select(
            [
                missing,
                there == 0,
                sure & (now > FACTOR * expected),
                sure & (now * FACTOR < expected),
            ],
            ["new", "gone", "grown", "shrunk"],
            "same",
        )
        return p, status.tolist()


def _either(path: U64, *parts: tuple[I64, U64]) -> U64:
    joined = np.zeros(len(path), np.uint64)
    for place, values in parts:
        joined[place] = values
    return joined


class _Painter(Painter):
    """Adds the baseline to a node."""

    def __init__(self, expected: F64, p: F64, status: list[str]) -> None:
        self._expected, self._p, self._status = expected, p, status

    def add(self, node: Node, at: int) -> None:
        node["base"] = round(float(self._expected[at]), 3)
        node["p"] = float(f"{self._p[at]:.3g}")
        node["status"] = self._status[at]
