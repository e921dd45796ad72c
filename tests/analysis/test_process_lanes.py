from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.analysis.conftest import SAMPLES, START, Sample, write_archive

from nodescope.analysis.process_lanes import count_process_seconds, draw_lanes
from nodescope.quantities import SECOND_NS


def test_every_sample_is_in_the_lane_of_its_process(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a", [SAMPLES, SAMPLES])
    counted = [count_process_seconds(segment) for segment in archive.segments()]
    lanes = draw_lanes(counted, START, SECOND_NS, 240, most=10)
    expected = Counter(sample.comm for sample in SAMPLES)
    assert {lane.comm: lane.total for lane in lanes} == {
        comm: 2 * samples for comm, samples in expected.items()
    }
    assert [lane.total for lane in lanes] == sorted((each.total for each in lanes), reverse=True)
    by_second = Counter((sample.comm, int(sample.second)) for sample in SAMPLES)
    for lane in lanes:
        for second in range(120):
            assert lane.samples[second] == by_second[lane.comm, second]


def test_those_that_ran_most_in_the_columns_are_kept(tmp_path: Path) -> None:
    early = [Sample(1.0, 0, 1, "early", "main")] * 5
    late = [Sample(60.0, 0, 2, "late", "main")] * 3
    archive = write_archive(tmp_path / "a", [early + late])
    counted = [count_process_seconds(segment) for segment in archive.segments()]
    assert [lane.comm for lane in draw_lanes(counted, START, SECOND_NS, 100, most=1)] == ["early"]
    after = draw_lanes(counted, START + 30 * SECOND_NS, 10 * SECOND_NS, 10, most=5)
    assert [(lane.comm, lane.samples.tolist()) for lane in after] == [
        ("late", [0, 0, 0, 3, 0, 0, 0, 0, 0, 0])
    ]
