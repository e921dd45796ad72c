from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exchange.text_archive import import_file, in_blocks, read_rows

from nodescope.exchange.core_times.mpstat import looks_like_mpstat, parse_mpstat
from nodescope.ingest.parsed import Notes, Reading
from nodescope.records.recorder_tables import CORE_STATES

ZEROS = {
    "usr": 0.0, "nice": 0.0, "sys": 0.0, "iowait": 0.0, "irq": 0.0,
    "soft": 0.0, "steal": 0.0, "guest": 0.0, "gnice": 0.0, "idle": 0.0,
}  # fmt: skip


def interval(timestamp: str, *cores: dict[str, float]) -> dict[str, Any]:
    loads: list[dict[str, Any]] = [{"cpu": "all"} | ZEROS]
    loads += [{"cpu": str(cpu)} | ZEROS | core for cpu, core in enumerate(cores)]
    return {"timestamp": timestamp, "cpu-load": loads}


def document(*intervals: dict[str, Any], date: str = "2026-11-16") -> bytes:
    host = {"nodename": "node-7", "release": "6.1.0", "number-of-cpus": 2, "date": date}
    content = {"sysstat": {"hosts": [host | {"statistics": list(intervals)}]}}
    return json.dumps(content, indent="\t").encode()


def readings(data: bytes, notes: Notes | None = None, size: int = 1 << 20) -> list[Reading]:
    batches = parse_mpstat(in_blocks(data, size), notes or Notes())
    return [reading for batch in batches for reading in batch]


def local_ns(*moment: int) -> int:
    return int(time.mktime((*moment, 0, 0, -1))) * 1_000_000_000  # type: ignore[arg-type]


def ticks(reading: Reading) -> dict[str, int]:
    found = dict(zip(CORE_STATES, reading.ticks, strict=True))
    return {state: count for state, count in found.items() if count}


SICK = document(
    interval("03:08:22", {"idle": 100.0}, {"sys": 100.0}),
    interval("03:08:23", {"usr": 25.5, "idle": 74.5}, {"sys": 99.0, "soft": 1.0}),
    interval("03:08:25", {"idle": 100.0}, {"usr": 10.0, "guest": 20.0, "sys": 70.0}),
)


def test_percentages_become_counters() -> None:
    notes = Notes()
    found = readings(SICK, notes)
    first_core = [reading for reading in found if reading.cpu == 0]
    second_core = [reading for reading in found if reading.cpu == 1]
    start = local_ns(2026, 11, 16, 3, 8, 22)
    second = 1_000_000_000
    # The first interval is as long as those after it are in the middle: 1.5 s here.
    assert [reading.time_ns - start for reading in first_core] == [
        -1.5 * second,
        0,
        second,
        3 * second,
    ]
    assert [ticks(reading) for reading in first_core] == [
        {}, {"idle": 150}, {"user": 26, "idle": 224}, {"user": 26, "idle": 424},
    ]  # fmt: skip
    # As in /proc/stat, user includes guests.
    assert ticks(second_core[-1]) == {"system": 389, "softirq": 1, "user": 60, "guest": 40}
    assert notes.stopped is None
    assert notes.facts["nodename"] == "node-7"


@given(st.integers(1, 300))
def test_where_blocks_are_cut_does_not_matter(size: int) -> None:
    notes = Notes()
    assert readings(SICK, notes, size) == readings(SICK)
    assert notes.stopped is None


def test_a_run_over_midnight() -> None:
    data = document(
        interval("11:59:59 PM", {"idle": 100.0}), interval("12:00:00 AM", {"idle": 100.0}),
        date="11/16/26",
    )  # fmt: skip
    assert readings(data)[-1].time_ns == local_ns(2026, 11, 17, 0, 0, 0)


def test_a_killed_run_gives_all_it_wrote(tmp_path: Path) -> None:
    cut = SICK.rindex(b'"guest": 20.0')
    path = tmp_path / "mpstat.json"
    path.write_bytes(SICK[:cut])
    report, archive = import_file(path, tmp_path / "archive")
    assert len(read_rows(archive, "cores")) == 6
    assert report.stopped_at is not None
    assert SICK[report.stopped_at :].lstrip(b"\n\t ,").startswith(b"{")
    (said,) = read_rows(archive, "events")
    assert "percentages" in said["message"]
    assert report.node == "node-7"


def test_a_locale_with_decimal_commas() -> None:
    with_commas = SICK.replace(b"25.5", b"25,50").replace(b"74.5", b"74,50").replace(b".0", b",00")
    assert readings(with_commas) == readings(SICK)


@pytest.mark.parametrize(
    "value", ["-5", "1e999", "NaN", "true", '"9"', "1" + "0" * 5000, "[[[[]]]]", "null"]
)
def test_numbers_that_cannot_be(value: str) -> None:
    notes = Notes()
    data = SICK.replace(b"25.5", value.encode())
    found = readings(data, notes)
    assert all(count >= 0 for reading in found for count in reading.ticks)


def test_an_empty_name_and_no_date() -> None:
    notes = Notes()
    assert readings(SICK.replace(b'"node-7"', b'""').replace(b'"2026-11-16"', b'""'), notes) == []
    assert "date" in (notes.stopped or "")


def test_deep_nesting_is_not_followed() -> None:
    notes = Notes()
    head = SICK[: SICK.index(b"[", SICK.index(b"statistics")) + 1]
    assert readings(head + b"[" * 200_000, notes) == []
    assert notes.stopped is not None


def test_what_it_is_recognised_by() -> None:
    assert looks_like_mpstat(SICK)
    assert not looks_like_mpstat(b'{"__REALTIME_TIMESTAMP": "1"}')
    assert not looks_like_mpstat(b"")


@pytest.mark.live
@pytest.mark.beside
@pytest.mark.debian("sysstat")
def test_real_mpstat(tmp_path: Path) -> None:
    path = tmp_path / "mpstat.json"
    before = time.time_ns()
    with path.open("w") as file:
        subprocess.run(["mpstat", "-P", "ALL", "1", "3", "-o", "JSON"], stdout=file, check=True)
    after = time.time_ns()
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_rows(archive, "cores")
    assert report.stopped_at is None
    cpus = {row["cpu"] for row in rows}
    assert len(rows) == 4 * len(cpus)
    for cpu in cpus:
        mine = sorted((row for row in rows if row["cpu"] == cpu), key=lambda row: row["time_ns"])
        spent = sum(mine[-1][state] for state in CORE_STATES if not state.startswith("guest"))
        elapsed = (mine[-1]["time_ns"] - mine[0]["time_ns"]) / 1e9 * 100
        assert spent == pytest.approx(elapsed, rel=0.02)
        assert before - 2e9 < mine[0]["time_ns"]
        assert mine[-1]["time_ns"] < after + 2e9
