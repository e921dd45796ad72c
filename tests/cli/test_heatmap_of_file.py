"""`nodescope heatmap FILE`: a capture that was never imported."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from tests.cli.conftest import Nodescope
from tests.exchange import perf_files as make
from tests.exchange.test_glance import CLOCK, T0, WALL, samples
from tests.printed_commands import in_text


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "perf.data"
    path.write_bytes(make.File([CLOCK], samples(), clock=(T0, WALL)).content())
    return path


def counts(nodescope: Nodescope, *arguments: str | Path) -> list[list[int]]:
    result = nodescope("heatmap", "--json", *arguments)
    assert result.code == 0, result.err
    found: list[list[int]] = json.loads(result.out)["counts"]
    return found


def test_as_after_an_import(nodescope: Nodescope, capture: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    assert nodescope("import", capture, "--archive", archive).code == 0
    for options in ((), ("--cpu", "1,3"), ("--pid", "12"), ("--mode", "kernel"),
                    ("--from", "+1s", "--to", "+2s")):  # fmt: skip
        expected = counts(nodescope, "--archive", archive, *options)
        assert sum(map(sum, expected)) > 0
        assert counts(nodescope, capture, *options) == expected
        assert counts(nodescope, "--archive", capture, *options) == expected


def test_names_need_an_import(nodescope: Nodescope, capture: Path) -> None:
    result = nodescope("heatmap", capture, "--comm", "python3")
    assert result.code == 2
    (command,) = in_text(result.err.partition("hint: ")[2])
    assert nodescope(*shlex.split(command)[1:]).code == 0
    archive = shlex.split(command)[-1]
    assert nodescope("heatmap", "--archive", archive, "--comm", "*").code == 0


def test_a_picture_and_a_terminal(nodescope: Nodescope, capture: Path, tmp_path: Path) -> None:
    assert "300 samples" in nodescope("heatmap", capture).out
    assert nodescope("heatmap", capture, "--output", tmp_path / "x.svg").code == 0
    assert b"<svg" in (tmp_path / "x.svg").read_bytes()


def test_one_recording_at_a_time(nodescope: Nodescope, capture: Path) -> None:
    result = nodescope("heatmap", capture, "--archive", capture)
    assert result.code == 2
    assert "only one of them" in result.err


# Every 250 ms a sample, for two seconds.
SCRIPT = "".join(
    f"kubelet 1871/1934 [039] {9000 + number / 4:.6f}: 1 cpu-clock:ppp:\n"
    "\tffffffff8120a1b4 mem_cgroup_iter+0x54 ([kernel.kallsyms])\n\n"
    for number in range(8)
)


def test_text_of_perf_script_as_after_an_import(nodescope: Nodescope, tmp_path: Path) -> None:
    script, archive = tmp_path / "perf.txt", tmp_path / "archive"
    script.write_text(SCRIPT)
    assert nodescope("import", script, "--archive", archive).code == 0
    for options in ((), ("--comm", "kubelet"), ("--frame", "mem_cgroup"), ("--cpu", "39")):
        expected = counts(nodescope, "--archive", archive, *options)
        assert sum(map(sum, expected)) == 8
        assert counts(nodescope, script, *options) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "perf.txt"]


def test_a_capture_without_times_of_samples_is_refused(
    nodescope: Nodescope, tmp_path: Path
) -> None:
    folded = tmp_path / "stacks.folded"
    folded.write_text("kubelet;main;work 12\nkubelet;main;rest 7\n")
    result = nodescope("heatmap", folded)
    assert result.code == 2
    assert "is folded stacks, which does not say when samples were taken" in result.err
    assert "perf.data and perf script" in result.err
    (command,) = in_text(result.err.partition("hint: ")[2])
    assert nodescope(*shlex.split(command)[1:]).code == 0


def test_what_is_no_capture_is_told_which_there_are(nodescope: Nodescope, tmp_path: Path) -> None:
    other = tmp_path / "notes.md"
    other.write_text("# Notes\n\nWhat we saw.\n")
    result = nodescope("heatmap", other)
    assert result.code == 2
    assert "not a capture" in result.err
    assert "perf script" in result.err


def test_a_cut_file_exits_as_its_import_does(nodescope: Nodescope, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(make.File([CLOCK], samples(), clock=(T0, WALL)).pipe()[:-20])
    looked = nodescope("heatmap", "--json", path)
    imported = nodescope("import", path, "--archive", tmp_path / "archive")
    assert (looked.code, imported.code) == (1, 1)
    assert "is whole up to byte" in looked.err
