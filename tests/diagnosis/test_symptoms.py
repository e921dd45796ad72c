"""What a chain starts at: every kind of report, and a moment at which nothing was reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Diagnosis
from nodescope.diagnosis.symptoms.lags import LAGS
from nodescope.lab import synthetic
from nodescope.lab.synthetic import Shape, write_story
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import NicResetDetails

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
RESET = ("eth0", None, "Trigger reset is on")
JOB = ("train", None, "the job failed: OOM in user code")

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the little story with one report of our own instead of the network's."""

    def written(
        shape: Shape, kind: str | None = None, cpu: int | None = -1, at: float = AT
    ) -> Path:
        def report(story: Any, start: int, length: int) -> None:
            if kind is not None and start <= at < start + length:
                told = {**REPORTS, "job_failed": JOB, "nic_reset": RESET}
                subject, named, message = told[kind]
                core = named if cpu == -1 else cpu
                story._tell([Event(story.at(at), kind, subject, message, core)])

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
    recording = Recording.open(path)
    extent = recording.extent
    window = Window(extent.from_ns, extent.to_ns)
    at_ns = None if at_s is None else extent.from_ns + round(at_s * SECOND_NS)
    return diagnose(recording, window, at_ns)


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
    (missing,) = [each for each in found.missing if each.what == "a pegged core"]
    assert missing.show is not None
    assert missing.show.what == "flame"
    assert missing.consequence.startswith("no core that could explain it was pegged in the ")


def test_what_was_not_recorded_is_not_said_to_be_absent(write: Write) -> None:
    """Nobody read core time around the report: no core can be said not to have been pegged."""
    path = write(replace(SHAPE, held_s=0), "nic_reset")
    *_, last = sorted((path / "segments").glob("*/segment.json"))
    description = json.loads(last.read_text())
    description["tables"].pop("cores")
    last.write_text(json.dumps(description))
    (missing,) = [each for each in ask(path).missing if each.what == "a pegged core"]
    assert missing.consequence == (
        "core time was not recorded in the 15 s before it: a pegged core cannot be ruled out"
    )


def test_a_report_of_another_core_is_another_incident(write: Write) -> None:
    lockup, held = ask(write(SHAPE, "soft_lockup", cpu=5)).findings
    assert [link.kind for link in lockup.chains[0].links] == ["event"]
    assert held.symptom.kind == "core_held"


# -- before or after ---------------------------------------------------------

SHORT = replace(SHAPE, seconds=300, resets=(200,))
HELD_TO = SHORT.resets[0]
HELD_FROM = HELD_TO - SHORT.held_s
EVERY = ["soft_lockup", "hung_task", "job_failed", "nic_reset"]


@pytest.mark.parametrize("kind", EVERY)
def test_a_core_held_after_the_report_is_an_incident_of_its_own(write: Write, kind: str) -> None:
    early = HELD_FROM - 14
    reported, held = ask(write(SHORT, kind, at=early)).findings
    assert reported.symptom.kind == kind
    assert "core" not in [link.kind for chain in reported.chains for link in chain.links]
    (ruled_out,) = [each for each in reported.ruled_out if each.name == "core 3"]
    assert "pegged for 6 s, but from 14 s after it; ruled out because" in ruled_out.statement
    assert ruled_out.show is not None
    assert ruled_out.show.what == "cores"
    assert held.symptom.kind == "core_held"
    assert held.chains[0].root.name == "ecs.service"


@pytest.mark.parametrize("kind", EVERY)
def test_a_report_while_the_core_is_held_is_of_it(write: Write, kind: str) -> None:
    (finding,) = ask(write(SHORT, kind, at=HELD_FROM + 4)).findings
    assert finding.symptom.kind == kind
    assert finding.chains[0].root.name == "ecs.service"


@pytest.mark.parametrize("kind", EVERY)
def test_a_core_explains_a_report_for_a_bounded_time(write: Write, kind: str) -> None:
    lag = LAGS[kind].seconds
    (finding,) = ask(write(SHORT, kind, at=HELD_TO + lag - 0.1)).findings
    assert finding.chains[0].root.name == "ecs.service"


@pytest.mark.parametrize("kind", EVERY)
def test_a_core_held_too_early_is_ruled_out_and_told_by_itself(write: Write, kind: str) -> None:
    reported, held = ask(write(SHORT, kind, at=HELD_TO + LAGS[kind].seconds + 1)).findings
    assert reported.symptom.kind == kind
    assert "core" not in [link.kind for chain in reported.chains for link in chain.links]
    (ruled_out,) = [each for each in reported.ruled_out if each.name == "core 3"]
    assert f"until {LAGS[kind].seconds + 1} s before it" in ruled_out.statement
    assert f"that is over {LAGS[kind].seconds} s: " in ruled_out.statement
    assert held.symptom.kind == "core_held"
    assert held.chains[0].root.name == "ecs.service"


def test_a_job_is_tied_to_a_core_by_time_and_the_chain_says_so(write: Write) -> None:
    (finding,) = ask(write(SHORT, "job_failed", at=HELD_TO + 9)).findings
    chain = finding.chains[0]
    job, core = chain.links[:2]
    assert (job.kind, core.kind) == ("job", "core")
    said = f"{JOB[2]}, 9 s after core 3 had been held; only the time ties them"
    assert job.statement == said
    assert chain.weakest == job
    assert chain.confidence < 0.8


def test_a_job_that_failed_before_the_reset_did_not_fail_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def report(story: Any, start: int, length: int) -> None:
        details = NicResetDetails(driver="ena", queue=1)
        events = [
            Event(story.at(HELD_TO), "nic_reset", "eth0", RESET[2], details=details),
            Event(story.at(HELD_TO - 12), "job_failed", "train", JOB[2]),
        ]
        if start <= HELD_TO < start + length:
            story._tell(events)

    monkeypatch.setattr(synthetic._Story, "_kernel_log", report)
    write_story(tmp_path / "archive", SHORT)
    job, reset = ask(tmp_path / "archive").findings
    assert (job.symptom.kind, job.chains) == ("job_failed", [])
    assert [link.kind for link in reset.chains[0].links[:2]] == ["event", "queue"]


@pytest.mark.parametrize(("held_s", "said"), [(6, "as long as the 5 s"), (3, "only after 5 s")])
def test_the_time_a_queue_waited_is_held_against_its_driver(
    write: Write, held_s: int, said: str
) -> None:
    (finding,) = ask(write(replace(SHORT, held_s=held_s), "nic_reset", at=HELD_TO)).findings
    (core,) = [link for link in finding.chains[0].links if link.kind == "core"]
    assert said in core.statement


# -- a moment ----------------------------------------------------------------


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
    assert "windows recorded before were as extreme" in task.statement
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
    assert [each.what for each in found.missing] == ["kernel log", "conditions"]


def test_a_moment_with_little_before_it_says_so(write: Write) -> None:
    found = ask(write(replace(SHAPE, healthy=True)), 100)
    assert found.findings == []
    assert "a baseline" in [each.what for each in found.missing]


def test_a_healthy_node_has_no_finding_at_any_moment(write: Write) -> None:
    path = write(replace(SHAPE, healthy=True))
    assert [ask(path, at).findings for at in range(700, 940, 40)] == [[]] * 6
