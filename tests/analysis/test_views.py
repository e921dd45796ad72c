from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.analysis.conftest import LATER, SAMPLES, START, Sample, count

from nodescope.analysis.cores import derive_shares
from nodescope.analysis.filter import Filter
from nodescope.analysis.flame import Group, flame_rows
from nodescope.analysis.flame_node import FlameNode
from nodescope.analysis.flame_rows import FlameNames, merge, prune, to_tree, whole
from nodescope.analysis.heatmap import make_heatmap
from nodescope.analysis.top import rank
from nodescope.archive.reader import Archive
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES, CoreReadings
from nodescope.recording.sample_columns import SampleColumns
from nodescope.records.function_pattern import FunctionPattern

ALL = SAMPLES + LATER


def paths(node: FlameNode, above: tuple[str, ...] = ()) -> Counter[tuple[str, ...]]:
    """Every path of a flame graph with its value, the root left out."""
    found: Counter[tuple[str, ...]] = Counter()
    for child in node["children"]:
        path = (*above, child["name"])
        found[path] += child["value"]
        found += paths(child, path)
    return found


def expected(samples: list[Sample], *, inverted: bool, group: Group) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for sample in samples:
        names = sample.names[::-1] if inverted else sample.names
        first = {
            "none": (), "comm": (sample.comm,), "cpu": (f"cpu {sample.cpu}",),
            "cgroup": (sample.cgroup,), "pid": (f"pid {sample.pid}",),
        }[group]  # fmt: skip
        path = (*first, *names)
        for length in range(1, len(path) + 1):
            found[path[:length]] += 1
    return found


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("group", ["none", "comm", "cpu", "cgroup", "pid"])
def test_a_flame_graph_is_the_sum_of_its_samples(
    parts: list[SampleColumns], inverted: bool, group: Group
) -> None:
    names = FlameNames()
    rows = merge(
        flame_rows(part, Filter(), names, inverted=inverted, group=group) for part in parts
    )
    assert whole(rows) == len(ALL)
    tree = to_tree(rows, names, whole(rows))
    assert paths(tree) == expected(ALL, inverted=inverted, group=group)


def test_a_part_of_a_segment_reads_samples_and_not_the_roll_up(archive: Archive) -> None:
    cut = SampleColumns(archive.segments()[0], START, START + 2 * SECOND_NS)
    assert not cut.whole
    names = FlameNames()
    rows = flame_rows(cut, Filter(), names, group="none")
    assert paths(to_tree(rows, names, 4)) == expected(SAMPLES[:4], inverted=False, group="none")


def test_pruning_keeps_callers_and_the_total(parts: list[SampleColumns]) -> None:
    names = FlameNames()
    rows = merge(flame_rows(part, Filter(), names) for part in parts)
    pruned = prune(rows, 0.3)
    assert set(paths(to_tree(pruned, names, 8))) == {
        ("app",),
        ("app", "main"),
        ("app", "main", "work"),
    }
    assert set(pruned.caller.tolist()) - {0} <= set(pruned.path.tolist())


@pytest.mark.parametrize(
    ("chosen", "passes"),
    [
        (Filter(cpus=frozenset({39})), lambda s: s.cpu == 39),
        (Filter(pids=frozenset({10, 11})), lambda s: s.pid in (10, 11)),
        (Filter(comms=("python3",)), lambda s: s.comm == "python3"),
        (Filter(comms=("k*",)), lambda s: s.comm.startswith("k")),
        (Filter(comms=("kworker/0:1",)), lambda s: s.comm == "kworker/0:1"),
        (Filter(kernel=True), lambda s: s.frames[-1][2]),
        (Filter(kernel=False), lambda s: not s.frames[-1][2]),
        (Filter(cgroups=("kubepods",)), lambda s: "kubepods" in s.cgroup),
        (Filter(frame=FunctionPattern("^work$")), lambda s: "work" in s.names),
        (Filter(without_frame=FunctionPattern("^main$")), lambda s: "main" not in s.names),
        (
            Filter(frame=FunctionPattern("^read$"), cpus=frozenset({1})),
            lambda s: "read" in s.names and s.cpu == 1,
        ),
    ],
)
def test_filters(parts: list[SampleColumns], chosen: Filter, passes: Any) -> None:
    wanted = [sample for sample in ALL if passes(sample)]
    assert 0 < len(wanted) < len(ALL)
    for by, key in (("comm", "comm"), ("cpu", "cpu"), ("pid", "pid"), ("cgroup", "cgroup")):
        found = {entry.name: entry.samples for entry in rank(parts, chosen, by)}  # type: ignore[arg-type]
        assert found == {str(name): number for name, number in count(wanted, key).items()}
    names = FlameNames()
    rows = merge(flame_rows(part, chosen, names, group="none") for part in parts)
    assert paths(to_tree(rows, names, 0)) == expected(wanted, inverted=False, group="none")


def test_functions_count_once_per_stack_however_often_they_recur(
    parts: list[SampleColumns],
) -> None:
    found = {entry.name: entry for entry in rank(parts, Filter(), "function")}
    assert found["work"].samples == 3
    assert found["work"].own == 2
    assert found["main"].samples == 7
    assert found["main"].own == 0
    assert found["main"].share == pytest.approx(7 / 8)


def test_the_heatmap_places_samples_within_their_second(parts: list[SampleColumns]) -> None:
    made = make_heatmap(parts, Filter(), START, START + 240 * SECOND_NS, rows=4)
    assert made.counts.shape == (240, 4)
    assert made.counts.sum() == len(ALL)
    assert made.counts[0].tolist() == [0, 1, 0, 1]
    assert made.counts[5].tolist() == [0, 0, 1, 0]


def test_nothing_recorded_is_nothing_shown() -> None:
    assert make_heatmap([], Filter(), START, START + SECOND_NS).counts.sum() == 0
    assert rank([], Filter(), "comm") == []
    assert to_tree(merge([]), FlameNames(), 0)["children"] == []


def test_core_shares() -> None:
    ticks = np.zeros((4, len(STATES)), np.int64)
    ticks[1, STATES.index("system")] = 99
    ticks[1, STATES.index("idle")] = 1
    ticks[2] = ticks[1]
    ticks[2, STATES.index("idle")] = 101
    ticks[3] = 0  # the core was offline: its counters started again
    readings = CoreReadings(np.array([39, 39, 39, 39]), START + np.arange(4) * SECOND_NS, ticks)
    shares = derive_shares([readings], START, START + 3 * SECOND_NS, SECOND_NS)
    assert shares.cpus == [39]
    system = shares.shares["system"][0]
    assert system[:2].tolist() == [0.99, 0.0]
    assert np.isnan(system[2])
