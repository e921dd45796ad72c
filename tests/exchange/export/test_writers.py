"""Exports, read again: every format carries the same samples."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from tests.analysis.conftest import LATER, SAMPLES, START, Sample, write_archive
from tests.exchange.exported import read_firefox, read_folded, read_pprof, read_speedscope

from nodescope.archive.reader import Archive
from nodescope.exchange.export.chrome import write_chrome
from nodescope.exchange.export.firefox import write_firefox
from nodescope.exchange.export.folded import write_folded
from nodescope.exchange.export.pprof import write_pprof
from nodescope.exchange.export.speedscope import write_speedscope
from nodescope.exchange.export.stacks import ChosenSamples
from nodescope.exchange.export.tables import write_table
from nodescope.quantities import SECOND_NS
from nodescope.recording.sample_columns import SampleColumns

ALL = [*SAMPLES, *LATER, *LATER]
PERIOD = SECOND_NS // 97


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    odd = Sample(7.0, 2, 20, "semi;colon", "main;new\nline")
    return write_archive(
        tmp_path_factory.mktemp("exported") / "archive", [[*SAMPLES, odd], LATER, LATER]
    )


@pytest.fixture
def parts(archive: Archive) -> list[ChosenSamples]:
    found = []
    for segment in archive.segments():
        columns = SampleColumns(segment)
        found.append(ChosenSamples(columns, columns.cpu != 2))  # without the odd one
    return found


def stacks(samples: list[Sample], *, comm: bool = True) -> Counter[tuple[str, ...]]:
    return Counter((*([sample.comm] if comm else []), *sample.names) for sample in samples)


def test_folded(parts: list[ChosenSamples], tmp_path: Path) -> None:
    path = tmp_path / "out.folded"
    with path.open("wb") as file:
        assert write_folded(parts, file) == len(ALL)
    expected = Counter(
        (sample.comm, *(name + "_[k]" * kernel for _, name, kernel in sample.frames))
        for sample in ALL
    )
    assert read_folded(path) == expected
    assert len(path.read_text().splitlines()) == len(expected)  # equal stacks are one line


def test_folded_names_cannot_break_lines(archive: Archive) -> None:
    columns = SampleColumns(archive.segments()[0])
    file = io.BytesIO()
    write_folded([ChosenSamples(columns, columns.cpu == 2)], file)
    assert file.getvalue() == b"semi:colon;main;new?line 1\n"


def test_pprof(parts: list[ChosenSamples], tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with path.open("wb") as file:
        assert write_pprof(parts, file, START, START + 240 * SECOND_NS, "hello") == len(ALL)
    found: Counter[Any] = Counter()
    for sample in read_pprof(path):
        assert sample["values"][1] == sample["values"][0] * PERIOD
        found[sample["stack"], sample["comm"], sample["pid"], sample["cpu"]] += sample["values"][0]
    assert found == Counter((one.names, one.comm, one.pid, one.cpu) for one in ALL)


@pytest.mark.debian("golang-go")
def test_pprof_is_read_by_go(parts: list[ChosenSamples], tmp_path: Path) -> None:
    path = tmp_path / "out.pb.gz"
    with path.open("wb") as file:
        write_pprof(parts, file, START, START + 240 * SECOND_NS)

    def top(*options: str) -> str:
        done = subprocess.run(
            ["go", "tool", "pprof", "-top", *options, str(path)],
            capture_output=True, text=True, timeout=120, check=False,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PPROF_TMPDIR": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    counted = top("-sample_index=samples")
    assert f"of {len(ALL)} total" in counted
    rows = {line.split()[-1]: line.split()[:5] for line in counted.splitlines() if "%" in line}
    assert rows["main"][3] == str(len(ALL) - 1)  # cumulative: all but the kernel worker
    assert rows["walk"][0] == "3"
    # A filter by label works: they are labels to Go, too.
    assert "accounting for 3, 30.00%" in top("-sample_index=samples", "-tagfocus=cpu=39")
    assert "Type: cpu" in top()


@pytest.mark.parametrize("split", ["none", "comm", "thread"])
def test_speedscope(parts: list[ChosenSamples], split: Any) -> None:
    file = io.BytesIO()
    assert write_speedscope(parts, file, "title", split) == len(ALL)
    document = json.loads(file.getvalue())
    found = read_speedscope(document)
    expected: dict[str, Counter[Any]] = {}
    for sample in ALL:
        group = {
            "none": "all", "comm": sample.comm, "thread": f"{sample.comm} ({sample.pid})",
        }[split]  # fmt: skip
        expected.setdefault(group, Counter())[sample.names] += 1
    assert found == expected
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert document["activeProfileIndex"] == 0


def test_chrome(parts: list[ChosenSamples], archive: Archive) -> None:
    file = io.BytesIO()
    to_ns = START + 400 * SECOND_NS
    assert write_chrome(parts, archive.segments(), file, START, to_ns, {}) == len(ALL)
    events = json.loads(file.getvalue())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert sum(event["args"]["samples"] for event in slices if "args" in event) == len(ALL)
    threads = {event["tid"]: event["args"]["name"] for event in events
               if event["name"] == "thread_name"}  # fmt: skip
    assert threads == {10: "app", 11: "python3", 12: "kworker/0:1", 13: "kubelet"}
    walk = [event for event in slices if event["name"] == "walk"]
    assert [event["ts"] for event in walk] == [90e6, 124e6, 244e6]
    assert {event["dur"] for event in walk} == {round(PERIOD / 1000, 3)}


def test_chrome_joins_what_stays_on_the_stack(tmp_path: Path) -> None:
    samples = [
        Sample(number * 0.01, 0, 1, "a", f"main;{'work' if number < 5 else 'rest'}")
        for number in range(8)
    ]
    archive = write_archive(tmp_path / "archive", [samples])
    columns = SampleColumns(archive.segments()[0])
    file = io.BytesIO()
    write_chrome([ChosenSamples(columns)], [], file, START, START + SECOND_NS, {})
    slices = {
        event["name"]: event
        for event in json.loads(file.getvalue())["traceEvents"]
        if event["ph"] == "X"
    }
    assert slices["main"]["args"] == {"samples": 8}
    assert slices["work"]["ts"] == 0
    assert slices["work"]["dur"] == 50_000
    assert slices["rest"]["ts"] == 50_000
    assert slices["main"]["dur"] == pytest.approx(70_000 + PERIOD / 1000, abs=0.01)


def test_firefox(parts: list[ChosenSamples]) -> None:
    file = io.BytesIO()
    assert write_firefox(parts, file, START, "title") == len(ALL)
    document = json.loads(file.getvalue())
    assert document["meta"]["preprocessedProfileVersion"] == 48
    expected: dict[Any, Counter[Any]] = {}
    for sample in ALL:
        expected.setdefault((sample.comm, str(sample.pid)), Counter())[sample.names] += 1
    assert read_firefox(document) == expected


def test_firefox_merges_threads_beyond_what_a_page_shows(tmp_path: Path) -> None:
    samples = [Sample(number / 10, 0, 100 + number, "short", "main") for number in range(300)]
    archive = write_archive(tmp_path / "archive", [samples])
    file = io.BytesIO()
    write_firefox([ChosenSamples(SampleColumns(archive.segments()[0]))], file, START, "title")
    found = read_firefox(json.loads(file.getvalue()))
    assert len(found) == 201
    assert sum(map(Counter.total, found.values())) == 300
    assert found["short (others)", "others"].total() == 100


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables(kind: Any, tmp_path: Path) -> None:
    batches = [
        {"name": ["a,b", 'q"'], "n": np.array([1, 2])},
        {"name": np.array(["ü", None], object), "n": [3, 4]},
    ]
    path = tmp_path / "out"
    with path.open("wb") as file:
        assert write_table(batches, {"name": "string", "n": "int64"}, file, kind) == 4
    if kind == "csv":
        rows = list(csv.DictReader(io.StringIO(path.read_text(), newline="")))
        assert [row["name"] for row in rows] == ["a,b", 'q"', "ü", ""]
        assert [int(row["n"]) for row in rows] == [1, 2, 3, 4]
    else:
        table = pyarrow.parquet.read_table(path)
        assert table.column("name").to_pylist() == ["a,b", 'q"', "ü", None]


def test_nothing_chosen_is_an_empty_file_that_can_be_read(archive: Archive, tmp_path: Path) -> None:
    columns = SampleColumns(archive.segments()[0])
    none = [ChosenSamples(columns, np.zeros(len(columns.cpu), bool))]
    path = tmp_path / "out"
    with path.open("wb") as target:
        assert write_pprof(none, target, START, START) == 0
    assert read_pprof(path) == []
    file = io.BytesIO()
    assert write_speedscope(none, file, "t") == 0
    assert read_speedscope(json.loads(file.getvalue())) == {"all": Counter()}
    file = io.BytesIO()
    assert write_firefox(none, file, START, "t") == 0
    assert json.loads(file.getvalue())["threads"] == []
    file = io.BytesIO()
    assert write_chrome(none, [], file, START, START, {}) == 0
    json.loads(file.getvalue())
    assert write_folded(none, io.BytesIO()) == 0
