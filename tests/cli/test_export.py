from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from tests.analysis.conftest import LATER, SAMPLES, write_archive
from tests.exchange.exported import read_firefox, read_folded, read_pprof, read_speedscope

from nodescope.cli.export import TABLES
from nodescope.lab.synthetic import Shape, write_story
from nodescope.quantities import SECOND_NS

Nodescope = Callable[..., Any]
ALL = [*SAMPLES, *LATER]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "archive"
    write_archive(path, [SAMPLES, LATER])
    return path


def total_of(kind: str, path: Path) -> int:
    if kind == "pprof":
        return sum(sample["values"][0] for sample in read_pprof(path))
    if kind == "folded":
        return read_folded(path).total()
    document = json.loads(path.read_text())
    if kind == "speedscope":
        return sum(own.total() for own in read_speedscope(document).values())
    if kind == "firefox":
        return sum(own.total() for own in read_firefox(document).values())
    return sum(
        event["args"]["samples"]
        for event in document["traceEvents"]
        if event["ph"] == "X" and "args" in event
    )


@pytest.mark.parametrize("kind", ["pprof", "folded", "speedscope", "firefox", "perfetto", "chrome"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], 8),
        (["--comm", "kubelet"], 2),
        (["--cpu", "0", "--from", "+0s", "--to", "+2s"], 3),
        (["--comm", "nobody"], 0),
    ],
)
def test_every_format_carries_the_same_samples(
    nodescope: Nodescope,
    recording: Path,
    tmp_path: Path,
    kind: str,
    options: list[str],
    expected: int,
) -> None:
    target = tmp_path / "out"
    result = nodescope(
        "export", kind, "--archive", recording, "--output", target, "--json", *options
    )
    assert (result.code, result.err) == (0, "")
    told = json.loads(result.out)
    assert (told["samples"], told["bytes"]) == (expected, target.stat().st_size)
    assert total_of(kind, target) == expected
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("view", "options", "rows", "columns"),
    [
        ("samples", ["--cpu", "39"], 2, {"time_ns", "cpu", "pid", "comm", "stack", "cgroup"}),
        ("top", ["--by", "comm"], 4, {"name", "samples", "share"}),
        ("top", ["--by", "function"], 8, {"name", "samples", "self", "module"}),
        ("heatmap", [], 8, {"column_ns", "offset_ns", "samples"}),
        ("cores", [], 0, {"time_ns", "cpu", "system"}),
        ("events", [], 0, {"time_ns", "kind", "message"}),
    ],
)
def test_views_as_tables(
    nodescope: Nodescope,
    recording: Path,
    tmp_path: Path,
    view: str,
    options: list[str],
    rows: int,
    columns: set[str],
) -> None:
    target = tmp_path / "out"
    found: list[dict[str, Any]] = []
    for kind in ("csv", "parquet"):
        result = nodescope(
            "export", kind, "--view", view, "--archive", recording, "--output", target, *options
        )
        assert (result.code, result.err) == (0, "")
        assert f"{rows} rows" in result.out
        if kind == "csv":
            found = list(csv.DictReader(io.StringIO(target.read_text())))
        else:
            table = pyarrow.parquet.read_table(target)
            assert columns <= set(table.column_names)
            found = table.to_pylist()
        assert len(found) == rows
    if view == "samples":
        assert {row["stack"] for row in found} == {"main;read;walk"}
        assert {row["cgroup"] for row in found} == {"/system.slice/kubelet.service"}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with tables of the node."""
    path = tmp_path_factory.mktemp("story") / "archive"
    write_story(path, replace(Shape().small(), seconds=240, resets=(200,)))
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_as_recorded(nodescope: Nodescope, story: Path, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "out"
    result = nodescope(
        "export", kind, "--table", "units", "--where", "unit=ecs.service", "--from", "+100s",
        "--to", "+200s", "--archive", story, "--output", target,
    )  # fmt: skip
    assert (result.code, result.err) == (0, "")
    if kind == "csv":
        found: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(target.read_text())))
    else:
        found = pyarrow.parquet.read_table(target).to_pylist()
    assert found
    assert {row["unit"] for row in found} == {"ecs.service"}
    assert {row["preset"] for row in found} == {"enabled"}
    times = [int(row["time_ns"]) for row in found]
    assert times == sorted(times)
    assert times[-1] - times[0] < 100 * SECOND_NS
    assert found[0]["time"].startswith("2026-")


@pytest.mark.parametrize("table", TABLES)
def test_every_table_can_be_exported(
    nodescope: Nodescope, story: Path, tmp_path: Path, table: str
) -> None:
    target = tmp_path / "out"
    result = nodescope("export", "csv", "--table", table, "--archive", story, "--output", target)
    assert (result.code, result.err) == (0, "")
    head = next(csv.reader(io.StringIO(target.read_text())))
    assert head[:2] == ["time_ns", "time"]


def test_stdout(nodescope_process: Nodescope, recording: Path) -> None:
    result = nodescope_process(
        "export", "folded", "--archive", recording, "--output", "-", "--comm", "kubelet"
    )
    assert (result.code, result.out) == (0, "kubelet;main;read_[k];walk_[k] 2\n")


def test_a_bundle_answers_like_its_archive(
    nodescope: Nodescope, recording: Path, tmp_path: Path
) -> None:
    target = tmp_path / "incident.nodescope"
    result = nodescope("export", "bundle", "--archive", recording, "--output", target)
    assert (result.code, result.err) == (0, "")
    assert f"--archive {target}" in result.out
    for command in (
        ["heatmap"],
        ["top", "--by", "function"],
        ["top", "--by", "pid", "--comm", "k*"],
        ["flame", "--from", "+1s", "--to", "+100s"],
        ["cores"],
        ["events"],
        ["quality"],
        ["compare", "--from", "+80s", "--to", "+100s"],
    ):
        asked = nodescope(*command, "--json", "--archive", recording)
        again = nodescope(*command, "--json", "--archive", target)
        assert asked.code == 0
        assert again.out == asked.out
    assert "8, 0 lost" in nodescope("status", "--archive", target).out


def test_a_bundle_of_a_part(nodescope: Nodescope, recording: Path, tmp_path: Path) -> None:
    target = tmp_path / "part"
    window = ("--from", "+1s", "--to", "+100s")
    result = nodescope("export", "bundle", "--archive", recording, "--output", target, "--json",
                       *window)  # fmt: skip
    told = json.loads(result.out)
    assert (told["samples"], told["segments"], told["cut"]) == (4, 1, 1)
    asked = nodescope("top", "--by", "comm", "--json", "--archive", recording, *window)
    again = nodescope("top", "--by", "comm", "--json", "--archive", target)
    assert again.out == asked.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bundle", "--output", "x", "--comm", "a"], "--comm: a bundle holds everything"),
        (["bundle", "--output", "-"], "a bundle is a file"),
        (["bundle", "--output", "."], "a folder"),
        (["flamegraph", "--output", "x"], "invalid choice: 'flamegraph'"),
        (["pprof"], "required: --output"),
        (["pprof", "--output", "/nowhere/at/all"], "/nowhere/at/all"),
        (["csv", "--output", "x", "--view", "pie"], "invalid choice: 'pie'"),
        (["csv", "--output", "x", "--table", "frames"], "invalid choice: 'frames'"),
        (["csv", "--output", "x", "--table", "units", "--where", "x=1"], "no column of units: 'x'"),
        (["csv", "--output", "x", "--table", "units", "--where", "unit"], "no column of units"),
        (["csv", "--output", "x", "--where", "unit=a"], "--where needs --table"),
        (["csv", "--output", "x", "--table", "units", "--view", "top"], "not allowed with"),
    ],
)
def test_what_cannot_be_exported(
    nodescope: Nodescope, recording: Path, arguments: list[str], said: str
) -> None:
    result = nodescope("export", *arguments, "--archive", recording)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.splitlines()[-1].startswith("hint: ")


def test_a_file_that_is_no_bundle_is_named(nodescope: Nodescope, tmp_path: Path) -> None:
    (tmp_path / "thesis.pdf").write_bytes(b"%PDF-1.4")
    result = nodescope("status", "--archive", tmp_path / "thesis.pdf")
    assert result.code == 2
    assert "thesis.pdf: not an archive: neither a folder nor a whole bundle" in result.err
