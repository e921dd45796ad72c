from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from tests.analysis.conftest import SAMPLES, START, write_archive

from nodescope.analysis.tracks import TRACKS, Readings, draw_line, known_tracks, read_tracks
from nodescope.quantities import SECOND_NS

NONE: list[object] = [None]


def readings(*pairs: tuple[float, float]) -> Readings:
    times = np.array([int(second * SECOND_NS) for second, _ in pairs], np.int64)
    return Readings(times, np.array([value for _, value in pairs], np.float64))


def test_a_gauge_in_columns() -> None:
    line = draw_line([readings((0.3, 1), (0.9, 3), (2.1, 5))], "gauge", 0, SECOND_NS, 4)
    assert line.most[:3].tolist() == [3, 5, 5]  # the second is between two readings
    assert line.mean[0] == 2
    assert math.isnan(line.most[3])


def test_a_counter_as_a_rate_over_segments() -> None:
    parts = [readings((0, 0), (1, 10)), readings((2, 30), (3, 5), (4, 6))]
    line = draw_line(parts, "rate", 0, SECOND_NS // 2, 9)
    assert line.most[:5].tolist() == [10, 10, 10, 20, 20]
    assert math.isnan(line.most[5])  # it was started again
    assert line.most[6:].tolist() == [1, 1, 1]


def test_a_hole_stays_one() -> None:
    seconds = [*range(10), *range(100, 110)]
    line = draw_line([readings(*((s, 1.0) for s in seconds))], "gauge", 0, SECOND_NS, 110)
    assert np.isnan(line.most[11:99]).all()
    assert not np.isnan(line.most[:10]).any()


def test_nothing_read() -> None:
    assert np.isnan(draw_line([], "gauge", 0, SECOND_NS, 3).most).all()
    assert np.isnan(draw_line([readings((1, 1))], "rate", 0, SECOND_NS, 3).most).all()


def test_tracks_of_a_segment(tmp_path: Path) -> None:
    at = 1_010 * SECOND_NS
    beside: dict[str, dict[str, list[object]]] = {
        "memory_cgroups": {
            "time_ns": [at, at + SECOND_NS], "version": ["v1"] * 2, "tracked": [10, 12],
            "visible": [3, 3], "dying": [7, None], "walk_ns": NONE * 2, "walk_file": NONE * 2,
        },
        "pressure": {
            "time_ns": [at, at + SECOND_NS, at], "cgroup": ["", "", "/x"],
            "resource": ["cpu"] * 3, "some_us": [0, 500_000, 9], "full_us": NONE * 3,
        },
    }  # fmt: skip
    archive = write_archive(tmp_path / "a", [SAMPLES], beside)
    found = read_tracks(archive.segments()[0])
    assert found["zombies.tracked"].value.tolist() == [10, 12]
    assert found["zombies.dying"].value.tolist() == [7]
    assert "zombies.walk" not in found
    assert "pressure.cpu.full" not in found
    some = found["pressure.cpu.some"]
    assert len(some.value) == 2
    assert some.time_ns[0] == START + 10 * SECOND_NS
    line = draw_line([some], "rate", START + 10 * SECOND_NS, 2 * SECOND_NS, 1)
    assert line.most.tolist() == [0.5]
    names = [track.name for track in known_tracks([found])]
    assert names == [name for name in TRACKS if name in found]


def test_throughput_of_all_network_devices_and_of_disks(tmp_path: Path) -> None:
    """Issue 13, point 20. The second device is read later, and stays as it was in between."""
    at = [1_010 * SECOND_NS + second * SECOND_NS for second in (0, 0, 10, 20, 20)]
    columns = (
        "driver version bus up carrier carrier_changes rx_queues tx_queues tx_timeouts "
        "rx_packets tx_packets tx_bytes rx_dropped tx_errors"
    )
    unknown = dict.fromkeys(columns.split(), NONE * 5)
    beside: dict[str, dict[str, list[object]]] = {
        "nics": {
            "time_ns": [*at], "nic": ["eth0", "eth1", "eth0", "eth0", "eth1"], **unknown,
            "rx_bytes": [1000, 500, 2000, 2000, 5500],
        },
        "memory": {
            "time_ns": [at[0], at[2]], "name": ["pgpgin"] * 2, "value": [100, 200],
        },
    }  # fmt: skip
    found = read_tracks(write_archive(tmp_path / "a", [SAMPLES], beside).segments()[0])
    assert found["network.received"].value.tolist() == [1500, 2500, 7500]
    start = START + 10 * SECOND_NS + 1
    line = draw_line([found["network.received"]], "rate", start, 10 * SECOND_NS, 2)
    assert line.most.tolist() == [100, 500]
    read = draw_line([found["disks.read"]], "rate", start, 10 * SECOND_NS, 1)
    assert read.most.tolist() == [10 * 1024]


def test_blocked_tasks_are_counted_while_they_last(tmp_path: Path) -> None:
    at = 1_010 * SECOND_NS
    rows = [(3, 7, 1.0), (5, 7, 3.0), (9, 7, 7.0), (5, 8, 1.0)]  # seconds after, thread, blocked
    beside: dict[str, dict[str, list[object]]] = {
        "blocked_tasks": {
            "time_ns": [at + second * SECOND_NS for second, _, _ in rows],
            "pid": [tid for _, tid, _ in rows],
            "tid": [tid for _, tid, _ in rows],
            "comm": ["dd"] * 4,
            "cgroup": NONE * 4,
            "blocked_ns": [int(blocked * SECOND_NS) for _, _, blocked in rows],
            "waits_in": NONE * 4,
            "stack": NONE * 4,
            "frozen": NONE * 4,
        }
    }
    archive = write_archive(tmp_path / "a", [SAMPLES], beside)
    found = read_tracks(archive.segments()[0])["blocked.tasks"]
    line = draw_line([found], "gauge", START + 10 * SECOND_NS, SECOND_NS, 12)
    assert line.most[1:11].tolist() == [0, 1, 1, 2, 2, 1, 1, 1, 1, 0]
