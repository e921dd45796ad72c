from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.conftest import Sample, write_archive

Nodescope = Callable[..., Any]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten minutes of python3; from second 590 on kubelet has a tenth of it, on core 39."""
    segments = []
    for number in range(5):
        samples = [Sample(at / 40, at % 2, 10, "python3", "main;train") for at in range(119 * 40)]
        if number == 4:
            samples += [
                Sample(110 + at / 20, 39, 99, "kubelet", "main;stat_[k];mem_cgroup_iter_[k]")
                for at in range(100)
            ]
        segments.append(samples)
    path = tmp_path_factory.mktemp("recording") / "archive"
    write_archive(path, segments)
    return path


def test_a_paged_engineer_reads_one_sentence(nodescope: Nodescope, recording: Path) -> None:
    result = nodescope("compare", "--from", "+590s", "--to", "+595s", "--archive", recording)
    assert result.code == 0
    first, second, *table = result.out.splitlines()
    assert first == (
        "kubelet had 33.3 % of the samples instead of none, in mem_cgroup_iter, on cpu 39: "
        "0 of 118 baseline windows had as much."
    )
    assert "300 samples in this window, " in second
    # Issue 13, point 14: one group for the process, each fact once, and a word for how sure.
    assert [line.split()[0] for line in table[2:]] == ["new"] * 3
    assert [line[34:] for line in table[2:]] == [
        "kubelet  likely",
        "  on cpu 39",
        "  in mem_cgroup_iter and 2 callers",
    ]
    assert "a change can be certain" in result.err
    assert max(map(len, result.out.splitlines()[1:])) <= 100


def test_json_is_a_list_of_changes(nodescope: Nodescope, recording: Path) -> None:
    result = nodescope(
        "compare", "--from", "+590s", "--to", "+595s", "--archive", recording, "--json"
    )
    document = json.loads(result.out)
    kubelet = next(each for each in document if each["name"] == "kubelet")
    assert kubelet["kind"] == "comm"
    assert kubelet["status"] == "new"
    assert kubelet["window"] == 100
    assert kubelet["baseline"] == 0
    assert kubelet["ratio"] is None
    assert kubelet["extreme"] == "0 of 118"
    assert 0 <= kubelet["p"] <= kubelet["q"] < 1e-12
    python = next(each for each in document if each["name"] == "python3")
    assert python["ratio"] == pytest.approx(1, rel=0.05)
    assert not python["flagged"]
    keys = {"kind", "name", "window", "baseline", "ratio", "p", "status", "q", "extreme"}
    assert all(keys <= each.keys() for each in document)
    assert {each["status"] for each in document} <= {"new", "grown", "shrunk", "gone"}
    limited = nodescope("compare", "--last", "5s", "--limit", "2", "--archive", recording, "--json")
    assert len(json.loads(limited.out)) == 2


def test_another_window(nodescope: Nodescope, recording: Path) -> None:
    result = nodescope(
        "compare", "--from", "+590s", "--to", "+595s", "--against-from", "+100s",
        "--against-to", "+105s", "--archive", recording, "--json",
    )  # fmt: skip
    kubelet = next(each for each in json.loads(result.out) if each["name"] == "kubelet")
    assert (kubelet["status"], kubelet["flagged"]) == ("new", True)
    assert "lower bound" in result.err


def test_an_empty_baseline_still_answers(nodescope: Nodescope, recording: Path) -> None:
    asked = ("compare", "--from", "+0s", "--to", "+5s", "--archive", recording)
    result = nodescope(*asked)
    assert result.code == 0
    assert result.out.startswith("There is nothing to compare with; this is what ran.")
    assert "python3" in result.out
    assert "what ran most:" in result.out
    assert not any(word in result.out for word in ("new", "difference", "before", "hint"))
    document = json.loads(nodescope(*asked, "--json").out)
    assert {(each["status"], each["p"]) for each in document} == {("unknown", None)}


def test_a_quiet_window(nodescope: Nodescope, recording: Path) -> None:
    result = nodescope("compare", "--from", "+300s", "--to", "+305s", "--archive", recording)
    assert result.out.startswith("Nothing differs beyond what the baseline does by itself.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which window"),
        (["--last", "5s", "--against-from", "+0s"], "a start and an end"),
        (["--last", "5s", "--against-from", "+9s", "--against-to", "+1s"], "ends before"),
        (["--last", "5s", "--baseline", "5m", "--against-from", "+0s", "--against-to", "+9s"],
         "no baseline"),
    ],
)  # fmt: skip
def test_windows_that_cannot_be(
    nodescope: Nodescope, recording: Path, arguments: list[str], said: str
) -> None:
    result = nodescope("compare", *arguments, "--archive", recording)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
