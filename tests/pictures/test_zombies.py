from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sources.memory_cgroups.trees import PAGE, V1Tree

from nodescope.judgement.cgroup_churn import Churn
from nodescope.judgement.zombie_history import History
from nodescope.judgement.zombie_report import Report, assess
from nodescope.pictures.zombie_document import report_document
from nodescope.pictures.zombies import group_files, render_report
from nodescope.quantities import MINUTE_NS
from nodescope.sources.cgroups.watch import Heard
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.memory_cgroups.pins import PinningFile, PinSearch
from nodescope.sources.memory_cgroups.survey import take_look


@pytest.fixture
def tree(tmp_path: Path) -> V1Tree:
    tree = V1Tree(tmp_path)
    tree.group("/", {}, {"cache": 4_000 * PAGE, "shmem": 3_000 * PAGE})
    tree.group("/pods", {}, {"cache": 3_000 * PAGE, "shmem": 3_000 * PAGE})
    tree.group("/batch", {}, {"cache": 1_000 * PAGE})
    tree.track(4_000)
    return tree


def _report(tree: V1Tree, history: History | None = None) -> Report:
    return assess(take_look(find_memory_hierarchy(tree.places), apart_s=0), history)


def _document(report: Report) -> Any:
    """The document as a script reads it."""
    return json.loads(json.dumps(report_document(report)))


def test_a_recorded_hour_says_when_it_becomes_critical(tree: V1Tree) -> None:
    times = [minute * MINUTE_NS for minute in range(61)]
    churned = [Churn("/pods", "run-*", removed=3_000, unreleased=3_000)]
    history = History(times, [1_000 + 50 * minute for minute in range(61)], churned)
    report = _report(tree, history)
    text = render_report(report)
    assert "+3,000 in 1h (recorded); +3,000 per hour; critical in 2h; a leak" in text
    trend = _document(report)["trend"]
    assert trend["source"] == "recording"
    assert trend["time_to_critical_ns"] == 120 * MINUTE_NS
    assert trend["nature"] == "leak"


def test_many_that_were_freed_are_not_called_cache_and_have_no_rate(tree: V1Tree) -> None:
    """Somebody may have deleted the files that pinned them; that is not known."""
    times = [second * 10_000_000_000 for second in range(13)]
    history = History(times, [8_985, 9_160, *[600] * 5, *range(1_000, 4_000, 500)], [])
    text = render_report(_report(tree, history))
    assert "many were freed in this time" in text
    assert "cache: it falls" not in text
    assert " per hour; many" not in text


def test_a_recorded_moment_is_no_forecast(tree: V1Tree) -> None:
    history = History([0, 20_000_000_000], [3_990, 4_000], [])
    report = _report(tree, history)
    assert report.to_critical_ns is None
    assert "per hour;" not in render_report(report)


def test_a_terminal_gets_lines_that_fit_and_commands_in_one(tree: V1Tree) -> None:
    """Issue 13, point 15: lines of zombies were wider than the terminal."""
    report = _report(tree)
    lines = render_report(report, width=100).splitlines()
    assert max(len(line) for line in lines if "$ " not in line) <= 100
    assert any(line.startswith("        ") for line in lines)  # what goes on is indented
    assert "    $ nodescope zombies --files" in lines
    (command,) = (line for line in lines if "force_empty" in line and "$ " in line)
    assert command.endswith("/batch/memory.force_empty")
    assert " ".join(render_report(report).split()) == " ".join(" ".join(lines).split())


def test_makers_are_named(tree: V1Tree) -> None:
    report = _report(tree)
    report.heard = Heard(60.0, 0, "tracepoints", 3)
    report.makers = [
        Churn("/pods", "run-*", "agent", 3, 3, settled=3, unreleased=2, pids=frozenset((812,)),
              ran=(("sh", 3),)),
        Churn("/ok", "x", "harmless", 9, 9, settled=9, unreleased=0),
    ]  # fmt: skip
    text = render_report(report)
    expected = "agent (pid 812) makes /pods/run-*: 3 per minute, 2 of 3 removed still held; ran sh"
    assert expected in text
    assert "harmless" not in text
    assert "3 events came too fast" in text
    makers = _document(report)["watch"]["makers"]
    assert [each["unreleased"] for each in makers] == [2, 0]


def test_a_watch_that_heard_nothing_says_so(tree: V1Tree) -> None:
    report = _report(tree)
    report.heard = Heard(60.0, 0, "tracepoints", 0)
    assert "In 60 s nobody made or removed a memory cgroup." in render_report(report)


def test_files_stand_by_folder_and_holder(tree: V1Tree) -> None:
    files = [PinningFile("/pods", f"/dev/shm/a/{n}", "shmem", PAGE) for n in range(9)]
    files.append(PinningFile("/pods", "/memfd:x", "deleted", 5 * PAGE, 7, "holder"))
    report = _report(tree)
    report.search = PinSearch(files, looked_at=12, complete=False, not_searched=["/data"])
    text = render_report(report)
    assert "/pods: 36 KiB of tmpfs in 9 files in /dev/shm/a\n      0, 1, 2, …" in text
    assert "memfd:x held open by holder (pid 7)" in text
    assert "The time was up before all was searched: not /data" in text
    assert [len(group) for _, group in group_files(files)] == [9, 1]
    document = _document(report)
    assert len(document["files"]) == 10
    assert document["files_complete"] is False


def test_pages_by_cgroup(tree: V1Tree) -> None:
    report = _report(tree)
    report.pages, report.pages_one_in = {"/pods": {"shmem": 8192, "file": 4096}}, 16
    assert "/pods: shmem 8 KiB, file 4 KiB" in render_report(report)
    assert _document(report)["pages"]["one_in"] == 16
