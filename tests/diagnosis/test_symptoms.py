"""What a chain starts at: every kind of report, and a moment at which nothing was reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodescope.analysis.window import Extent, Window
from nodescope.archive.reader import Archive
from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Diagnosis
from nodescope.lab import synthetic
from nodescope.lab.synthetic import SECOND, Shape, write_story

SHAPE = replace(Shape().small(), seconds=960, resets=(900,))
AT = SHAPE.resets[0]
LOCKED = "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kubelet:812]"
REPORTS = {
    "soft_lockup": ("cpu3", 3, LOCKED),
    "hard_lockup": ("cpu3", 3, "Watchdog detected hard LOCKUP on cpu 3"),
    "rcu_stall": ("cpu3", 3, "rcu: INFO: rcu_preempt self-detected stall on CPU"),
    "hung_task": ("python3", None, "INFO: task python3:99 blocked for more than 120 seconds."),
    "core_starved": ("cpu3", 3, "core 3 served no packets for 6 s"),
}  # fmt: skip

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the little story with one report of our own instead of the network's."""

    def written(shape: Shape, kind: str | None = None, cpu: int | None = -1) -> Path:
        def report(story: Any, start: int, length: int) -> None:
            if kind is not None and start <= AT < start + length:
                subject, named, message = REPORTS[kind]
                row = dict(time_ns=story.at(AT), kind=kind, subject=subject, message=message,
                           cpu=named if cpu == -1 else cpu)  # fmt: skip
                story._append("events", [row])

        monkeypatch.setattr(synthetic._Story, "_kernel_log", report)
        write_story(tmp_path / "archive", shape)
        return tmp_path / "archive"

    return written


def forget(path: Path, table: str) -> None:
    """Take a table away, as if nobody had recorded it."""
    for described in (path / "segments").glob("*/segment.json"):
        description = json.loads(described.read_text())
        description["tables"].pop(table)
        described.write_text(json.dumps(description))


def ask(path: Path, at_s: float | None = None) -> Diagnosis:
    segments = Archive.open(path).segments()
    extent = Extent(segments)
    window = Window(extent.from_ns, extent.to_ns)
    at_ns = None if at_s is None else extent.from_ns + round(at_s * SECOND)
    return diagnose(segments, window, at_ns)


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_leads_to_the_held_core_and_on(write: Write, kind: str) -> None:
    (finding,) = ask(write(SHAPE, kind)).findings
    assert finding.symptom.kind == kind
    assert [each.kind for each in finding.also] == ["core_held"]
    chain = finding.chains[0]
    assert [link.kind for link in chain.links[:4]] == ["event", "core", "task", "mechanism"]
    event, core = chain.links[:2]
    assert event.statement == REPORTS[kind][2]
    assert core.subject == "cpu3"
    assert chain.root.name == "ecs.service"
    assert ("only the time ties them" in core.statement) == (kind == "hung_task")


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_without_a_held_core_is_told_and_nobody_blamed(write: Write, kind: str) -> None:
    found = ask(write(replace(SHAPE, held_s=0), kind))
    (finding,) = found.findings
    assert [link.kind for link in finding.chains[0].links] == ["event"]
    assert finding.chains[0].root.name == REPORTS[kind][0]
    (missing,) = [each for each in found.missing if each.what == "a held core"]
    assert "nodescope flame" in missing.hint


def test_a_report_of_another_core_is_another_incident(write: Write) -> None:
    lockup, held = ask(write(SHAPE, "soft_lockup", cpu=5)).findings
    assert [link.kind for link in lockup.chains[0].links] == ["event"]
    assert held.symptom.kind == "core_held"


def test_a_core_held_for_less_than_a_symptom_is_found_at_the_moment_asked(write: Write) -> None:
    path = write(replace(SHAPE, held_s=1))
    assert ask(path).findings == []
    found = ask(path, AT + 3)
    (finding,) = found.findings
    assert finding.symptom.kind == "moment"
    assert "nothing was reported" in finding.symptom.statement
    chain = finding.chains[0]
    assert [link.kind for link in chain.links] == [
        "core", "task", "mechanism", "state", "parent", "source", "why",
    ]  # fmt: skip
    assert chain.root.name == "ecs.service"
    assert "some core was so in 0 of the" in chain.links[0].statement
    assert chain.weakest.kind == "core"
    assert ask(path, AT - 60).findings == []


def test_a_core_that_is_often_so_does_not_stand_out(write: Write) -> None:
    often = tuple(range(20, AT + 1, 8))  # a second of every eight
    found = ask(write(replace(SHAPE, held_s=1, resets=often)), AT)
    assert found.findings == []


def test_without_core_times_the_moment_is_told_from_samples(write: Write) -> None:
    path = write(replace(SHAPE, held_s=15))
    forget(path, "cores")
    (finding,) = ask(path, AT).findings
    assert finding.symptom.subject == "kubelet"
    core, task = finding.chains[0].links[:2]
    assert core.statement.startswith("core 3 was busy in those 20 s")
    assert "windows before were as extreme" in task.statement
    assert finding.chains[0].root.name == "ecs.service"


def test_a_process_that_has_no_core_to_itself_is_told_alone(write: Write) -> None:
    path = write(replace(SHAPE, held_s=1))
    forget(path, "cores")
    (finding,) = ask(path, AT).findings
    (task,) = finding.chains[0].links
    assert (task.kind, task.subject) == ("task", "kubelet")
    assert "0 of " in task.statement
    assert finding.chains[0].root.kind == "process"


def test_a_kernel_log_that_nobody_read_is_missed_beside_other_events(write: Write) -> None:
    found = ask(write(SHAPE))
    assert found.findings[0].chains[0].root.name == "ecs.service"
    assert [each.what for each in found.missing] == ["kernel log"]


def test_a_moment_with_little_before_it_says_so(write: Write) -> None:
    found = ask(write(replace(SHAPE, healthy=True)), 100)
    assert found.findings == []
    assert "a baseline" in [each.what for each in found.missing]


def test_a_healthy_node_has_no_finding_at_any_moment(write: Write) -> None:
    path = write(replace(SHAPE, healthy=True))
    assert [ask(path, at).findings for at in range(700, 940, 40)] == [[]] * 6
