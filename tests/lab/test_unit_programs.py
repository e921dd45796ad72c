from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.lab import unit_programs
from nodescope.lab.unit_files import make_neighbours, unit_file
from nodescope.lab.variation import Variation


class Over(Exception):
    """A program would wait now until it is killed."""


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses that a program makes; it is over when it waits for good."""
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if seconds >= 3600 or len(pauses) > 200:
            raise Over

    monkeypatch.setattr(time, "sleep", pause)
    return pauses


@pytest.fixture
def program(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program as a unit runs it, with an environment as bare as a unit's."""
    words = shlex.split(unit_programs.command("ledger-sync", "append", tmp_path / "data", 0.01, 1))
    with subprocess.Popen(words, env={"PATH": os.environ["PATH"]}) as process:
        yield process
        process.kill()


def test_a_unit_can_run_it_without_other_packages_and_under_its_name(
    program: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    grown = lambda: data.exists() and data.stat().st_size > 100_000  # noqa: E731
    wait_for(grown, "the program appends", process=program)
    assert Path(f"/proc/{program.pid}/comm").read_text() == "ledger-sync\n"


def test_memory_is_taken_in_steps(waits: list[float]) -> None:
    with pytest.raises(Over):
        unit_programs.grow("6", "2", "0.5")
    assert waits == [0.5, 0.5, 0.5, 3600]


def test_who_is_refused_a_child_asks_again(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: Iterator[int | OSError] = iter([101, OSError(errno.EAGAIN, "no"), 102, 103])
    asked = []

    def fork() -> int:
        answer = next(answers)
        asked.append(answer)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(os, "fork", fork)
    with pytest.raises(Over):
        unit_programs.fork("3", "0.1")
    assert len(asked) == 4  # three children, and the one that was refused


def test_a_full_file_system_is_tried_again(
    waits: list[float], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    synced = []

    def fsync(file: int) -> None:
        synced.append(file)
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(Over):
        unit_programs.fill(str(tmp_path / "data"), "3", "0.1")
    assert len(synced) == 3


def test_a_scan_reads_all_and_begins_again_until_its_time_is_over(tmp_path: Path) -> None:
    for name in ("a", "b/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    files = unit_programs._files(str(tmp_path), time.monotonic() + 3600)
    first = [next(files) for _ in range(2)]
    assert {*first} == {f"{tmp_path}/a", f"{tmp_path}/b/c"}
    assert [next(files) for _ in range(2)] == first
    assert not [*unit_programs._files(str(tmp_path), time.monotonic() - 1)]


def test_a_unit_file_has_its_settings_and_starts_only_if_asked() -> None:
    text = unit_file("/bin/true", "TasksMax=7", start=False)
    assert "ExecStart=/bin/true\n" in text
    assert "TasksMax=7\n" in text
    assert "[Install]" not in text
    assert "[Install]\nWantedBy=multi-user.target\n" in unit_file("/bin/true")


def test_neighbours_are_others_in_each_run_and_run_our_programs() -> None:
    units = make_neighbours(Variation(1))
    assert units.keys().isdisjoint(make_neighbours(Variation(2)))
    assert all(f"{Path(sys.executable).resolve()} -m" in text for text in units.values())
