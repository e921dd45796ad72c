"""Compare a window of time with the time before it.

The statistics are those of a node, not of a coin: samples of a process come in
bursts, so their counts per window vary far more than a Poisson count, and a test
that assumes one flags everything. The baseline is cut into windows as long as
the one in question; each feature's mean and overdispersion are estimated there
(shrunk towards what is usual on this node), and p is the tail of the negative
binomial that follows. Benjamini–Hochberg holds the share of false flags at 5 %,
and a gate leaves out what is certain but small: a flag needs a share that moved
by a point, a factor of two, and ten samples.

With fewer than `LEAST_WINDOWS` windows of baseline nothing can be said about
bursts. The test is then the exact conditional one between two Poisson counts,
and the result says so: it is a bound, and a flag is a hint.

A window longer than the baseline's windows is treated as wholly correlated
within itself: its overdispersion is not averaged away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodescope.analysis.baseline_windows import lay_windows, measure_recorded
from nodescope.analysis.features import (
    Block,
    Feature,
    Windows,
    count_part,
    gather,
    has_roll_up,
    read_part,
    sum_totals,
)
from nodescope.analysis.filter import Filter
from nodescope.analysis.statistics import (
    adjust,
    binomial_tails,
    negative_binomial_tails,
    overdispersion,
    predictive_overdispersion,
)
from nodescope.archive.feature_counts import Kind
from nodescope.arrays import F64, I64, U64, Bool
from nodescope.errors import UsageError
from nodescope.numbering import distinct
from nodescope.quantities import MINUTE_NS, format_count, format_duration
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records.tables import NARROW

Status = Literal["new", "grown", "shrunk", "gone", "unknown"]  # unknown: without a baseline
Method = Literal["negative binomial", "exact conditional", "none"]

BASELINE_NS = 30 * MINUTE_NS  # before the window, where nobody says what to compare with
LEAST_WINDOWS = 12
ENOUGH_WINDOWS = 120  # fewer know too little of bursts: 24 flag falsely 30 % of the time
FALSE_SHARE = 0.05
SHARE_POINT = 0.01
FACTOR = 2.0
LEAST_COUNT = 10
_REFERENCE = 256  # features that tell what overdispersion is usual
THREADS = 2  # decoding leaves the interpreter's lock; more gain nothing

Parts = Sequence[Callable[[], SampleColumns]]


@dataclass(frozen=True, slots=True)
class Change:
    """One feature in the window and in the baseline."""

    kind: Kind
    name: str
    window: int  # samples in the window
    baseline: float  # samples a window of this length has, on average
    window_share: float  # of all samples
    baseline_share: float
    p: float | None  # None: nothing to compare with
    q: float | None
    as_extreme: int  # baseline windows with as many samples (shrunk: as few)
    status: Status
    flagged: bool
    depth: float = 0.0  # of functions

    @property
    def ratio(self) -> float | None:
        """How many times the baseline's samples; None where those were none."""
        return self.window / self.baseline if self.baseline else None

    @property
    def share_ratio(self) -> float | None:
        """How many times the baseline's share; None where that was nothing."""
        return self.window_share / self.baseline_share if self.baseline_share else None

    @property
    def stands_out(self) -> bool:
        """Return whether it is large and no baseline window had it, yet it is not certain."""
        if self.flagged or self.p is None or self.p > FALSE_SHARE or self.as_extreme:
            return False
        there, expected = np.array([self.window]), np.array([self.baseline])
        shares = np.array([self.window_share]), np.array([self.baseline_share])
        return bool(_passes(there, expected, *shares)[0])


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes, flagged ones first, then by how far their share moved."""

    changes: list[Change]
    samples: int
    baseline_samples: float  # in as much time as the window has
    windows: int  # of the baseline, those recorded
    window_ns: int  # the length of each
    method: Method
    tests: int
    recorded_ratio: float  # of the window's time
    notes: list[str]


def compare(
    window: Parts,
    baseline: Parts,
    span: tuple[int, int],
    against: tuple[int, int],
    chosen: Filter,
    *,
    listed: int = 200,
    threads: int = THREADS,
) -> Comparison:
    """Compare the samples of `span` with those of `against`; 0 `listed` are all."""
    if span[0] < against[1] and against[0] < span[1]:
        raise UsageError(
            "the window overlaps the one it is compared with",
            hint="what is in both would hide what changed: let one end before the other starts",
        )
    recorded = measure_recorded([part().segment for part in window], span)
    whole = Windows(span[0], max(1, span[1] - span[0]), np.ones(1, bool))
    blocks = _count(window, chosen, whole, np.empty(0, np.uint64), threads)
    found = _union(blocks)
    there = sum_totals(blocks, found)
    samples = sum(int(block.samples.sum()) for block in blocks)
    least = max(LEAST_COUNT, SHARE_POINT * samples / FACTOR)

    by_second = any(has_roll_up(part(), chosen) for part in baseline)
    segments = [part().segment for part in baseline]
    windows = lay_windows(span, against, segments, by_second=by_second)
    before = _count(baseline, chosen, windows, found[there >= least], threads, rolled=True)
    exposure = recorded / windows.width_ns  # of the window, in windows of the baseline
    diverse = any(part().has_trunk for part in (*window, *baseline))
    evidence = Evidence(blocks, before, windows, exposure, diverse)
    return evidence.judge(listed, recorded / max(1, span[1] - span[0]))


def _count(
    parts: Parts,
    chosen: Filter,
    windows: Windows,
    wanted: U64,
    threads: int,
    *,
    rolled: bool = False,
) -> list[Block]:
    """Count the parts; with `rolled` from their roll-ups where they have them."""

    def one(make: Callable[[], SampleColumns]) -> Block | None:
        part = make()
        if rolled and has_roll_up(part, chosen):
            return read_part(part, windows)
        return count_part(part, chosen, windows, wanted)

    if len(parts) < 2 or threads < 2:
        found = [one(make) for make in parts]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(one, parts))
    return [block for block in found if block is not None]


def _union(blocks: Sequence[Block]) -> U64:
    if not blocks:
        return np.empty(0, np.uint64)
    return distinct(np.concatenate([block.feature for block in blocks]))


# -- the test ----------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """Counts of features in the window and in the baseline, and the test between them."""

    window: list[Block]
    baseline: list[Block]
    windows: Windows  # of the baseline
    exposure: float  # of the window, in windows of the baseline
    diverse: bool = False  # a segment has so many stacks that narrow paths are not counted

    def judge(self, listed: int, recorded_ratio: float = 1.0) -> Comparison:
        """Test every feature; 0 `listed` are all."""
        count = int(self.windows.used.sum())
        features = _union([*self.window, *self.baseline])
        there = sum_totals(self.window, features)
        before = sum_totals(self.baseline, features)
        samples = sum(int(block.samples.sum()) for block in self.window)
        before_samples = sum(int(block.samples.sum()) for block in self.baseline)
        method = _choose_method(samples, before_samples, count)
        scale = self.exposure / max(1, count)
        expected: F64 = before * np.float64(scale)
        window_share = there / max(1, samples)
        before_share = before / max(1, before_samples)
        moved = window_share - before_share
        gate = _passes(there, expected, window_share, before_share)
        order = np.lexsort((features, -np.abs(moved), ~gate))
        # Whatever passes the gate is tested, however few are listed.
        shown = order if not listed else order[: max(listed, int(gate.sum()))]
        p, extreme = self._test(method, shown, features, there, before, expected)
        q = None if p is None else adjust(p, len(features))
        changes = []
        for at, number in enumerate(shown.tolist()):
            sure = q is not None and bool(gate[number]) and float(q[at]) <= FALSE_SHARE
            # That test knows nothing of bursts; a window just like this one disproves it.
            if method == "exact conditional" and extreme[at]:
                sure = False
            name, depth = self._describe(int(features[number]))
            changes.append(
                Change(
                    name.kind,
                    name.name,
                    int(there[number]),
                    float(expected[number]),
                    float(window_share[number]),
                    float(before_share[number]),
                    None if p is None else float(p[at]),
                    None if q is None else float(q[at]),
                    int(extreme[at]),
                    "unknown"
                    if method == "none"
                    else _status(int(there[number]), int(before[number]), float(moved[number])),
                    sure,
                    depth,
                )
            )
        changes.sort(key=lambda each: not each.flagged)
        return Comparison(
            changes if not listed else changes[:listed],
            samples,
            before_samples * scale,
            count,
            self.windows.width_ns,
            method,
            len(features),
            recorded_ratio,
            _notes(method, self.windows, recorded_ratio, samples, diverse=self.diverse),
        )

    def _describe(self, feature: int) -> tuple[Feature, float]:
        for block in (*self.window, *self.baseline):
            described = block.describe(feature)
            if described is not None:
                return described
        raise KeyError(feature)

    def _test(
        self, method: Method, shown: I64, features: U64, there: I64, before: I64, expected: F64
    ) -> tuple[F64 | None, I64]:
        """Two-sided p of those shown, and how many baseline windows were as extreme."""
        if method == "none":
            return None, np.zeros(len(shown), np.int64)
        count = int(self.windows.used.sum())
        # Together with some that tell what is usual here.
        common = np.flatnonzero(before > 3 * count)
        usual = common[:: max(1, len(common) // _REFERENCE)]
        both = distinct(np.concatenate((shown, usual)))
        counts = gather(self.baseline, features[both], len(self.windows))[:, self.windows.used]
        at = np.searchsorted(both, shown)
        now = there[shown].astype(np.float64)
        up = now > expected[shown]
        per_window = now[:, np.newaxis] / max(self.exposure, 1e-9)
        as_many = (counts[at] >= per_window - 1e-9).sum(axis=1)
        as_few = (counts[at] <= per_window + 1e-9).sum(axis=1)
        if method == "negative binomial":
            alpha = overdispersion(counts)
            prior = float(np.median(alpha[np.searchsorted(both, usual)])) if len(usual) else 0.1
            mean = np.maximum(counts[at].mean(axis=1), 0.5 / count)
            spread = predictive_overdispersion(alpha[at], mean, count, prior)
            below, above = negative_binomial_tails(now, mean * self.exposure, spread)
        else:
            chance = np.full(len(shown), self.exposure / (self.exposure + count))
            below, above = binomial_tails(now, now + before[shown], chance)
        return np.minimum(1, 2 * np.where(up, above, below)), np.where(up, as_many, as_few)


def _choose_method(samples: int, before_samples: int, windows: int) -> Method:
    if not samples or not before_samples or not windows:
        return "none"
    return "negative binomial" if windows >= LEAST_WINDOWS else "exact conditional"


def _passes(there: I64, expected: F64, share: F64, before: F64) -> Bool:
    """The gate: a point of share, a factor of two, ten samples, and more (fewer) of them.

    Where the rest of the node grew idle, the share of what went on as before rose, too.
    """
    rose = (share - before >= SHARE_POINT) & (share >= FACTOR * before) & (there >= LEAST_COUNT)
    fell = (before - share >= SHARE_POINT) & (before >= FACTOR * share)
    more, fewer = there > expected, there < expected
    passing: Bool = (rose & more) | (fell & fewer & (expected >= LEAST_COUNT))
    return passing


def _status(there: int, before: int, moved: float) -> Status:
    if not before:
        return "new"
    if not there:
        return "gone"
    return "grown" if moved > 0 else "shrunk"


def _notes(
    method: Method, windows: Windows, recorded_ratio: float, samples: int, *, diverse: bool
) -> list[str]:
    notes = []
    count = int(windows.used.sum())
    few = f"only {format_count(count, 'window')} of {format_duration(windows.width_ns)}"
    if not samples:
        notes.append("the window has no samples that match the filters")
    elif method == "none":
        notes.append("nothing was recorded before the window: there is no baseline to compare with")
    elif method == "exact conditional":
        notes.append(
            f"the baseline has {few}, too few to know how much "
            "counts vary by themselves: take each change as a hint (p is a lower bound)"
        )
    elif count < ENOUGH_WINDOWS:
        notes.append(f"the baseline has {few}; from {ENOUGH_WINDOWS} on a change can be certain")
    if samples and recorded_ratio < 0.99:
        notes.append(f"only {100 * recorded_ratio:.0f} % of the window was recorded")
    if samples and diverse:
        notes.append(
            f"stacks are diverse: a function counts on paths with at least 1/{round(1 / NARROW)} "
            "of its segment's samples, and where it is the innermost one"
        )
    return notes


def main_changes(changes: Iterable[Change], limit: int) -> list[tuple[Change, int]]:
    """Choose what to show a person: flagged changes, functions of one call chain once.

    A function that is hot makes all its callers hot. Of functions of one process with
    nearly equal counts only the innermost is shown, with the number of the others.
    """
    shown: list[tuple[Change, int]] = []
    for change in sorted(
        (each for each in changes if each.flagged), key=lambda each: (-each.depth, each.name)
    ):
        chain = next(
            (index for index, (other, _) in enumerate(shown) if _of_one_chain(change, other)),
            None,
        )
        if chain is None:
            shown.append((change, 0))
        else:
            shown[chain] = (shown[chain][0], shown[chain][1] + 1)
    kinds = {"comm": 0, "core": 1, "function": 2, "kernel": 3}
    shown.sort(key=lambda each: (-abs(_moved(each[0])), kinds[each[0].kind], each[0].name))
    return shown[:limit] if limit else shown


def _moved(change: Change) -> float:
    return round(change.window_share - change.baseline_share, 3)


def _of_one_chain(outer: Change, inner: Change) -> bool:
    if outer.kind != inner.kind or outer.kind not in ("function", "kernel"):
        return False
    if outer.kind == "function" and outer.name.split(";")[0] != inner.name.split(";")[0]:
        return False
    window = abs(outer.window - inner.window) <= 0.1 * max(outer.window, inner.window)
    before = abs(outer.baseline - inner.baseline) <= 0.1 * max(outer.window, inner.window, 1)
    return window and before
