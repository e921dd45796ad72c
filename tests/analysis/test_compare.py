"""Comparing: what is flagged, what is not, and what can be said without a baseline."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.analysis.conftest import START, Sample, write_archive

from nodescope.analysis.baseline_windows import lay_windows
from nodescope.analysis.compare import (
    Change,
    Comparison,
    Evidence,
    compare,
    main_changes,
)
from nodescope.analysis.features import Block, Vocabulary, Windows
from nodescope.analysis.filter import Filter
from nodescope.archive.reader import Archive
from nodescope.errors import UsageError
from nodescope.quantities import SECOND_NS
from nodescope.recording.sample_columns import SampleColumns

COMMS, FUNCTIONS, KUBELET = 60, 25, 12
HERTZ, WINDOW_S = 49, 5.0
Array = np.ndarray[Any, np.dtype[np.float64]]


# -- a node that is bursty, as nodes are -------------------------------------


@dataclass
class Node:
    """Processes with steady workloads, bursty daemons and periodic housekeeping."""

    rng: np.random.Generator
    cores: int = 96
    busy: float = 0.4

    def __post_init__(self) -> None:
        rng = self.rng
        weight = 1 / np.arange(1, COMMS + 1) ** 1.3
        self.mean = weight / weight.sum() * self.cores * self.busy
        self.mean[KUBELET] = 0.007 * self.cores * self.busy
        self.spread = np.clip(rng.lognormal(np.log(0.6), 0.5, COMMS), 0.15, 2.0)
        self.spread[:3], self.spread[KUBELET] = 0.15, 0.5
        self.mix = rng.dirichlet(np.full(FUNCTIONS, 0.4), COMMS)
        self.period = np.zeros(COMMS, int)
        some = rng.choice(np.arange(5, COMMS), 8, replace=False)
        self.period[some] = rng.choice([2, 6, 12, 60], 8)
        self.period[KUBELET] = 2

    def expected(self, windows: int) -> Array:
        """Samples expected, by window and function."""
        rng = self.rng
        sigma, keep = np.sqrt(np.log1p(self.spread**2)), 0.6
        noise = rng.standard_normal((windows, COMMS))
        level = np.empty_like(noise)
        level[0] = noise[0]
        for at in range(1, windows):
            level[at] = keep * level[at - 1] + np.sqrt(1 - keep**2) * noise[at]
        rate = self.mean * np.exp(sigma * level - sigma * sigma / 2)
        turn = np.arange(windows)[:, np.newaxis] + rng.integers(0, 60, COMMS)
        on = (self.period > 0) & (turn % np.maximum(self.period, 1) == 0)
        burst = np.where(on, 0.5 + 0.5 * self.period, 0.5)
        rate *= np.where(self.period > 0, burst, 1.0)
        phase = np.repeat(rng.choice([0.6, 1.0, 1.3], windows // 12 + 1), 12)[:windows]
        rate[:, :3] *= phase[:, np.newaxis]
        lively = rng.gamma(1 / 0.09, 0.09, (windows, COMMS, FUNCTIONS))
        result: Array = rate[:, :, np.newaxis] * self.mix * lively * HERTZ * WINDOW_S
        return result


def judge(counts: Array, window: Array) -> Comparison:
    """Test one window against others; both by comm and function."""
    comms = [f"comm{number}" for number in range(COMMS)]
    functions = [f"f{number}" for number in range(FUNCTIONS)]
    many = COMMS * (FUNCTIONS + 1)

    def block(by_window: Array) -> Block:
        flat = by_window.reshape(len(by_window), -1)
        counted = np.concatenate((by_window.sum(axis=2), flat), axis=1).T.astype(np.int64)
        ids = np.arange(many, dtype=np.uint64)
        kind = np.repeat(np.array([0, 1], np.int8), [COMMS, COMMS * FUNCTIONS])
        key = np.concatenate((np.arange(COMMS), np.arange(COMMS * FUNCTIONS)))
        return Block(
            ids, counted.sum(axis=1), kind, key, np.zeros(many, np.float32), ids, 0, counted,
            by_window.sum(axis=(1, 2)).astype(np.int64), Vocabulary(comms, functions),
        )  # fmt: skip

    windows = Windows(0, 5 * SECOND_NS, np.ones(len(counts), bool))
    return Evidence([block(window[np.newaxis])], [block(counts)], windows, 1.0).judge(200)


def flags(*, share: float, repeats: int, windows: int = 360) -> tuple[float, float]:
    """How often anything, and how often kubelet, is flagged; its share is lifted to `share`."""
    rng = np.random.default_rng(20_240_229)
    anything = kubelet = 0
    for _ in range(repeats):
        node = Node(rng)
        expected = node.expected(windows + 40)
        at = windows + int(rng.integers(40))
        if share:
            own, total = expected[at, KUBELET].sum(), expected[at].sum()
            expected[at, KUBELET, FUNCTIONS - 1] += max(0, (share * total - own) / (1 - share))
        counts = rng.poisson(expected).astype(np.float64)
        found = [each.name for each in judge(counts[:windows], counts[at]).changes if each.flagged]
        anything += bool(found)
        kubelet += any(name.startswith(f"comm{KUBELET}") for name in found)
    return anything / repeats, kubelet / repeats


@pytest.mark.slow
def test_a_quiet_window_is_rarely_flagged() -> None:
    assert flags(share=0, repeats=150)[0] <= 0.07


def test_kubelet_at_six_percent_is_always_flagged() -> None:
    assert flags(share=0.065, repeats=40)[1] == 1.0


# -- from an archive ---------------------------------------------------------


def steady(seconds: float, per_second: int = 40, skip: Sequence[str] = ()) -> list[Sample]:
    """Samples at an even pace: three processes, the last of them rare."""
    found = []
    for number in range(int(seconds * per_second)):
        comm, stack = [
            ("python3", "main;train"),
            ("python3", "main;train;gemm"),
            ("kworker/0:1", "kthread_[k];worker_[k]"),
            ("python3", "main;load;read_[k]"),
        ][number % 4]
        if comm not in skip:
            found.append(Sample(number / per_second, number % 2, 10 + number % 4, comm, stack))
    return found


def run_compare(
    archive: Archive, span: tuple[float, float], against: tuple[float, float], **how: Any
) -> Comparison:
    def place(seconds: tuple[float, float]) -> tuple[int, int]:
        return int(START + seconds[0] * SECOND_NS), int(START + seconds[1] * SECOND_NS)

    def parts(between: tuple[int, int]) -> list[functools.partial[SampleColumns]]:
        return [
            functools.partial(SampleColumns, segment, *between)
            for segment in archive.segments()
            if segment.wall_from_ns < between[1] and segment.wall_to_ns >= between[0]
        ]

    one, other = place(span), place(against)
    return compare(parts(one), parts(other), one, other, how.pop("chosen", Filter()), **how)


def by_name(comparison: Comparison) -> dict[tuple[str, str], Change]:
    return {(each.kind, each.name): each for each in comparison.changes}


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """Four minutes; from second 200 to 205 kubelet walks cgroups on core 39."""
    walking = [
        Sample(80 + number / 20, 39, 99, "kubelet", "main;read_[k];mem_cgroup_nr_lru_pages_[k]")
        for number in range(100)
    ]
    rest = [each for each in steady(119) if not (80 <= each.second < 85 and each.comm != "python3")]
    return write_archive(tmp_path_factory.mktemp("a") / "archive", [steady(119), rest + walking])


def test_a_brand_new_path_is_new_and_a_vanished_one_is_gone(incident: Archive) -> None:
    found = run_compare(incident, (200, 205), (0, 200))
    assert (found.method, found.windows, found.window_ns) == (
        "negative binomial",
        40,
        5 * SECOND_NS,
    )
    changes = by_name(found)
    for kind, name in [
        ("comm", "kubelet"),
        ("function", "kubelet;mem_cgroup_nr_lru_pages"),
        ("kernel", "mem_cgroup_nr_lru_pages"),
        ("core", "cpu 39;kubelet"),
    ]:
        change = changes[kind, name]
        assert (change.status, change.window, change.baseline) == ("new", 100, 0)
        assert change.ratio is None
        assert change.flagged
        assert change.as_extreme == 0
        assert change.q is not None
        assert change.q < 1e-6
    gone = changes["comm", "kworker/0:1"]
    assert (gone.status, gone.window, gone.flagged) == ("gone", 0, True)
    assert gone.baseline == pytest.approx(50, rel=0.05)
    assert gone.as_extreme == 0
    assert not changes["comm", "python3"].flagged
    assert "python" not in {name for _, name in changes}  # names keep their digits


def test_one_line_per_call_chain(incident: Archive) -> None:
    found = run_compare(incident, (200, 205), (0, 200))
    shown = [
        (change.kind, change.name, callers) for change, callers in main_changes(found.changes, 0)
    ]
    assert ("function", "kubelet;mem_cgroup_nr_lru_pages", 2) in shown
    assert ("kernel", "mem_cgroup_nr_lru_pages", 0) in shown
    assert not any(name == "kubelet;main" for _, name, _ in shown)


def test_counts_are_those_of_the_samples(incident: Archive) -> None:
    found = by_name(run_compare(incident, (10, 15), (20, 100), listed=0))
    assert found["comm", "python3"].window == 150
    assert found["function", "python3;main"].window == 150
    assert found["function", "python3;train"].window == 100
    assert found["kernel", "read"].window == 50
    assert found["core", "cpu 0;python3"].window == 50
    assert found["core", "cpu 1;python3"].window == 100
    assert found["comm", "python3"].baseline == pytest.approx(150, rel=0.01)
    assert not any(change.flagged for change in found.values())


def test_an_empty_baseline_is_no_error(incident: Archive) -> None:
    found = run_compare(incident, (0, 5), (-3600, 0))
    assert (found.method, found.windows) == ("none", 0)
    assert found.changes
    told = {(each.status, each.p, each.flagged) for each in found.changes}
    assert told == {("unknown", None, False)}
    assert "nothing was recorded before the window" in found.notes[0]


def test_an_empty_window_is_no_error(incident: Archive) -> None:
    found = run_compare(incident, (0, 5), (20, 100), chosen=Filter(comms=("nobody",)))
    assert (found.samples, found.changes) == (0, [])
    assert "no samples that match the filters" in found.notes[0]


def test_two_windows_are_compared_exactly(incident: Archive) -> None:
    found = run_compare(incident, (200, 205), (100, 105))
    assert found.method == "exact conditional"
    kubelet = by_name(found)["comm", "kubelet"]
    assert (kubelet.status, kubelet.flagged) == ("new", True)
    assert kubelet.p == pytest.approx(2 * 0.5**100)
    assert "lower bound" in found.notes[0]


def test_a_burst_that_a_short_baseline_has_too_is_not_flagged(tmp_path: Path) -> None:
    bursts = [
        Sample(start + number / 50, 0, 7, "cron", "main;job")
        for start in (2, 10)
        for number in range(50)
    ]
    archive = write_archive(tmp_path / "archive", [steady(20) + bursts])
    found = run_compare(archive, (10, 12), (0, 8))
    assert found.method == "exact conditional"
    cron = by_name(found)["comm", "cron"]
    assert cron.q is not None
    assert cron.q < 0.05  # as if by chance alone
    assert cron.as_extreme == 1
    assert not cron.flagged


def test_a_short_recording_is_cut_into_more_windows(incident: Archive) -> None:
    found = run_compare(incident, (60, 70), (-1740, 60))
    assert (found.window_ns, found.windows) == (2 * SECOND_NS, 30)
    assert "the baseline has only 30 windows of 2 s; from 120 on" in found.notes[0]
    assert found.method == "negative binomial"


def test_a_filter_holds_in_window_and_baseline(incident: Archive) -> None:
    found = run_compare(incident, (200, 205), (0, 200), chosen=Filter(cpus=frozenset({39})))
    assert {name for kind, name in by_name(found) if kind == "comm"} == {"kubelet"}


def test_time_that_was_not_recorded_is_no_baseline(incident: Archive) -> None:
    windows = lay_windows(
        (START + 200 * SECOND_NS, START + 205 * SECOND_NS),
        (START - 1600 * SECOND_NS, START + 200 * SECOND_NS),
        incident.segments(),
    )
    assert len(windows) == 360
    assert windows.used.sum() == 40
    assert windows.used[-40:].all()


def test_a_recursive_function_counts_once(tmp_path: Path) -> None:
    samples = [Sample(number / 10, 0, 1, "a", "f;g;f;g;f") for number in range(300)]
    archive = write_archive(tmp_path / "archive", [samples])
    found = by_name(run_compare(archive, (20, 25), (0, 20), listed=0))
    assert found["function", "a;f"].window == 50
    assert found["function", "a;g"].window == 50


def test_a_window_over_two_segments_is_counted_in_both(incident: Archive) -> None:
    found = by_name(run_compare(incident, (115, 125), (0, 110)))
    assert found["comm", "python3"].window == 150 + 120  # a segment's last second has none


def test_a_window_is_not_compared_with_a_part_of_itself(incident: Archive) -> None:
    with pytest.raises(UsageError, match="overlaps the one it is compared with"):
        run_compare(incident, (200, 205), (150, 201))


def test_what_went_on_while_the_rest_grew_idle_has_not_grown(tmp_path: Path) -> None:
    """Its share rose, but it ran no more than before."""
    steady_one = [Sample(number / 5, 0, 7, "steady", "main;work") for number in range(500)]
    busy = [Sample(number / 20, 1, 8, "busy", "main;work") for number in range(1800)]  # to 90 s
    archive = write_archive(tmp_path / "archive", [steady_one + busy])
    found = by_name(run_compare(archive, (90, 99), (0, 90)))
    assert not found["comm", "steady"].flagged
    assert found["comm", "steady"].status == "grown"
    assert found["comm", "busy"].flagged


def test_the_word_is_that_of_the_shares(tmp_path: Path) -> None:
    """The node is busier: what ran a little more has a smaller share."""
    some = [Sample(number / 10, 0, 7, "some", "main;work") for number in range(900)]
    more = [Sample(90 + number / 14, 0, 7, "some", "main;work") for number in range(126)]
    others = [Sample(90 + number / 99, 1, 8, "others", "main;work") for number in range(891)]
    archive = write_archive(tmp_path / "archive", [some + more + others])
    change = by_name(run_compare(archive, (90, 99), (0, 90)))["comm", "some"]
    assert change.ratio is not None
    assert change.ratio > 1
    assert change.share_ratio is not None
    assert change.share_ratio < 1
    assert change.status == "shrunk"
    assert not change.flagged
