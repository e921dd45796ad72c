"""Metrics by the second, from readings that come as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.analysis.conftest import SECOND, START, Sample, write_archive

from nodescope.analysis.epochs import F64
from nodescope.analysis.metrics import read_metrics
from nodescope.analysis.window import Window

_BEGIN = 1_000 * SECOND  # of the monotonic clock: the first second of the window
_LENGTH = 120


def _read(path: Path, tables: Mapping[str, Sequence[Mapping[str, object]]]) -> dict[str, F64]:
    beside = {
        table: {name: [row[name] for row in rows] for name in rows[0]}
        for table, rows in tables.items()
    }
    archive = write_archive(path, [[Sample(0, 0, 1, "a", "f")]], beside)
    window = Window(START, START + _LENGTH * SECOND)
    return dict(read_metrics(archive.segments(), window))


def _at(second: int) -> int:
    return _BEGIN + second * SECOND


def _memory(name: str, *readings: tuple[int, int]) -> list[dict[str, object]]:
    return [{"time_ns": _at(at), "name": name, "value": value} for at, value in readings]


def test_a_level_stands_until_the_next_reading(tmp_path: Path) -> None:
    free = _memory("MemFree", (0, 100), (10, 90), (20, 50), (30, 50))
    found = _read(tmp_path, {"memory": free})["memory MemFree"]
    assert found[[0, 9, 10, 19, 20, 30]].tolist() == [100, 100, 90, 90, 50, 50]
    assert np.isnan(found[31:]).all()  # nobody looked


def test_a_rise_is_spread_since_the_table_was_read_before(tmp_path: Path) -> None:
    rows = _memory("MemFree", *((second, second) for second in range(0, 50, 10)))
    rows += _memory("pgscan_direct", (0, 7), (40, 57))  # unchanged until 30, so not written
    found = _read(tmp_path, {"memory": rows})["memory pgscan_direct"]
    assert found[:31].tolist() == [0] * 31
    assert found[31:41] == pytest.approx([5.0] * 10)


def test_a_counter_that_began_anew_says_nothing(tmp_path: Path) -> None:
    rows = _memory("pgfault", (0, 100), (10, 200), (20, 5), (30, 25))
    found = _read(tmp_path, {"memory": rows})["memory pgfault"]
    assert found[1:11] == pytest.approx([10.0] * 10)
    assert found[11:21] == pytest.approx([0.0] * 10, abs=1e-9)
    assert found[21:31] == pytest.approx([2.0] * 10)


def test_cores_and_queues_are_added_up(tmp_path: Path) -> None:
    softnet = [
        {"time_ns": _at(second), "cpu": cpu, "processed": 100 * second * (cpu + 1),
         "dropped": 0, "squeezed": 0, "net_rx": 0, "net_tx": 0, "starved_ns": 0}
        for second in range(20) for cpu in range(3)
    ]  # fmt: skip
    statistics = [
        {"time_ns": _at(second), "nic": "eth0", "name": f"queue_{queue}_tx_cnt", "value": second}
        for second in range(0, 20, 5) for queue in (0, 11)
    ]  # fmt: skip
    found = _read(tmp_path, {"softnet": softnet, "nic_statistics": statistics})
    assert found["softnet processed"][1:20] == pytest.approx([600.0] * 19)
    assert found["nic statistics eth0 queue_*_tx_cnt"][1:16] == pytest.approx([2.0] * 15)


def test_only_the_nodes_own_pressure_counts_and_holes_are_holes(tmp_path: Path) -> None:
    rows = [
        {"time_ns": _at(second), "cgroup": cgroup, "resource": "cpu",
         "some_us": second * scale, "full_us": None}
        for second in (0, 2, 4, 6, 60, 62, 64) for cgroup, scale in (("", 10), ("/a", 1000))
    ]  # fmt: skip
    found = _read(tmp_path, {"pressure": rows})
    some = found["pressure cpu some_us"]
    assert some[1:7] == pytest.approx([10.0] * 6)
    assert np.isnan(some[7:60]).all()
    assert some[61:65] == pytest.approx([10.0] * 4)


def test_what_is_read_too_rarely_is_left_out(tmp_path: Path) -> None:
    assert _read(tmp_path, {"memory": _memory("MemFree", (0, 1), (60, 2), (119, 3))}) == {}
