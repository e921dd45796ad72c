"""Metrics by the second, from readings that come as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.conftest import START, Sample, write_archive

from nodescope.analysis.metrics import read_metrics
from nodescope.arrays import F64
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

_BEGIN = 1_000 * SECOND_NS  # of the monotonic clock: the first second of the window
_LENGTH = 120


def _read(path: Path, tables: Mapping[str, Sequence[Mapping[str, object]]]) -> dict[str, F64]:
    beside = {
        table: {name: [row[name] for row in rows] for name in rows[0]}
        for table, rows in tables.items()
    }
    archive = write_archive(path, [[Sample(0, 0, 1, "a", "f")]], beside)
    window = Window(START, START + _LENGTH * SECOND_NS)
    return dict(read_metrics(Recording(archive.segments()), window))


def _at(second: int) -> int:
    return _BEGIN + second * SECOND_NS


def _memory(name: str, *readings: tuple[int, int]) -> list[dict[str, object]]:
    return [{"time_ns": _at(at), "name": name, "value": value} for at, value in readings]


def test_a_level_stands_until_the_next_reading(tmp_path: Path) -> None:
    free = _memory("MemFree", (0, 100), (10, 90), (20, 50), (30, 50))
    found = _read(tmp_path, {"memory": free})["memory MemFree"]
    assert found[[0, 9, 10, 19, 20, 30, 110]].tolist() == [100, 100, 90, 90, 50, 50, 50]


def test_a_rise_is_spread_over_the_time_since_one_looked(tmp_path: Path) -> None:
    rows = _memory("MemFree", *((second, second) for second in range(0, 50, 10)))
    rows += _memory("pgscan_direct", (0, 7), (40, 57))  # unchanged until 30, so not written
    found = _read(tmp_path, {"memory": rows})["memory pgscan_direct"]
    assert found[:31].tolist() == [0] * 31
    assert found[31:41] == pytest.approx([5.0] * 10)


def test_a_counter_that_began_anew_says_nothing(tmp_path: Path) -> None:
    rows = _memory("pgfault", (0, 100), (10, 200), (20, 5), (30, 25))
    found = _read(tmp_path, {"memory": rows})["memory pgfault"]
    assert found[1:11] == pytest.approx([10.0] * 10)
    assert found[11:21].tolist() == [0.0] * 10
    assert found[21:31] == pytest.approx([2.0] * 10)


def test_cores_and_queues_are_added_up(tmp_path: Path) -> None:
    softnet = [
        {"time_ns": _at(second), "cpu": cpu, "processed": 100 * second * (cpu + 1),
         "dropped": 0, "squeezed": 0, "net_rx": 0, "net_tx": 0, "starved_ns": 0}
        for second in range(20) for cpu in range(3)
    ]  # fmt: skip
    statistics = [
        {"time_ns": _at(second), "nic": "eth0", "name": name, "value": second}
        for second in (0, 10, 50) for name in ("queue_0_tx_missed", "queue_11_tx_missed", "rx_cnt")
    ]  # fmt: skip
    found = _read(tmp_path, {"softnet": softnet, "nic_statistics": statistics})
    assert found["softnet processed"][1:20] == pytest.approx([600.0] * 19)
    assert "softnet dropped" not in found  # it never moved
    missed = found.pop("nic statistics eth0 queue_*_tx_missed")
    assert missed[1:11] == pytest.approx([2.0] * 10)
    assert missed[11:41].tolist() == [0.0] * 30
    assert missed[41:51] == pytest.approx([8.0] * 10)  # not earlier: it would have been written
    assert not any(name.startswith("nic statistics") for name in found)  # read too rarely


def test_only_the_nodes_own_pressure_counts(tmp_path: Path) -> None:
    rows = [
        {"time_ns": _at(second), "cgroup": cgroup, "resource": "cpu",
         "some_us": second * scale, "full_us": None}
        for second in (0, 2, 4, 60, 62) for cgroup, scale in (("", 10), ("/a", 1000))
    ]  # fmt: skip
    found = _read(tmp_path, {"pressure": rows})
    assert list(found) == ["pressure cpu some_us"]
    some = found["pressure cpu some_us"]
    assert some[1:5] == pytest.approx([10.0] * 4)
    assert some[5:59].tolist() == [0.0] * 54
    assert some[59:61] == pytest.approx([280.0] * 2)


def test_what_no_segment_covers_is_not_known(tmp_path: Path) -> None:
    archive = write_archive(tmp_path, [[Sample(0, 0, 1, "a", "f")]], {
        "memory": {"time_ns": [_at(0), _at(10)], "name": ["MemFree"] * 2, "value": [1, 2]},
    })  # fmt: skip
    window = Window(START - 100 * SECOND_NS, START + 500 * SECOND_NS)
    (found,) = [values for _, values in read_metrics(Recording(archive.segments()), window)]
    assert np.isnan(found[:99]).all()
    assert found[[100, 109, 110, 215]].tolist() == [1, 1, 2, 2]
    assert np.isnan(found[230:]).all()
