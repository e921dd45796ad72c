"""Conditions beside incidents: one judgement with `audit`, references, every form of a report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.diagnosis.test_diagnose import SHAPE
from tests.diagnosis.test_reports import AT, event, made, reset, told

from nodescope.cli.main import main
from nodescope.diagnosis.finding import Chain, Diagnosis, Link, Root
from nodescope.diagnosis.lasting import find_lasting
from nodescope.diagnosis.report.document import diagnosis_document
from nodescope.diagnosis.report.summary import again
from nodescope.diagnosis.report.text import render_text
from nodescope.judgement.condition import Condition, ConditionOwner
from nodescope.judgement.recorded_audit import RecordedAudit, audit_recording
from nodescope.judgement.service_conditions import find_service_conditions
from nodescope.lab.score import solve
from nodescope.lab.synthetic import write_story
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.action import Action, Target
from nodescope.records.view import Moment, View
from nodescope.wall_time import format_moment

BUNDLES = sorted((Path(__file__).parent / "bundles").glob("*.bundle"))
KEYS = ["kind", "owner", "severity", "since", "statement", "trend", "steps", "show"]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("story") / "archive"
    write_story(path, SHAPE)
    return path


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_audit_and_diagnosis_agree(bundle: Path) -> None:
    recording = Recording.open(bundle)
    at_ns = recording.extent.to_ns - 1
    known = audit_recording(recording, at_ns)
    assert isinstance(known, RecordedAudit)
    judged = {(each.kind, each.name) for each in known.audit.findings if each.verdict != "unused"}
    found = find_lasting(recording, Window(recording.extent.from_ns, recording.extent.to_ns), [])
    services = {each.kind for each in find_service_conditions(recording, at_ns)}
    lasting = {(each.owner.kind, each.owner.name) for each in found if each.kind in services}
    assert lasting == judged


def test_the_story_too_and_at_any_moment_of_it(story: Path) -> None:
    recording = Recording.open(story)
    extent = recording.extent
    for at_ns in range(extent.from_ns, extent.to_ns, (extent.to_ns - extent.from_ns) // 7):
        known = audit_recording(recording, at_ns)
        judged = known.audit.findings if isinstance(known, RecordedAudit) else []
        names = sorted(each.name for each in judged if each.verdict != "unused")
        lasting = find_service_conditions(recording, at_ns)
        assert sorted(each.owner.name for each in lasting) == names


def test_a_loop_explains_the_incident_whose_chain_blames_it() -> None:
    found = solve(next(each for each in BUNDLES if each.stem == "loop-beside-leak"))
    said = {each.owner.name: each.reference for each in found.conditions}
    assert said["leaky.service"] == "explains incident 1"
    assert said["eager.service"] == ""  # it loops as well, and is not blamed
    (zombies,) = (each for each in found.conditions if each.kind == "zombies")
    assert zombies.reference == "explains incident 1"


@pytest.mark.parametrize("name", ["disk-full", "conntrack-full"])
def test_what_is_full_is_put_together_with_the_incident_of_its_getting_full(name: str) -> None:
    found = solve(next(each for each in BUNDLES if each.stem == name))
    (full,) = (each for each in found.conditions if each.kind.endswith("_nearly_full"))
    assert full.reference == "see also incident 1"


# -- made by hand --------------------------------------------------------------------------


def lasting(since_ns: int | None = AT, statement: str = "web.service loops: x") -> Condition:
    look = View("audit", Moment(AT), unit="web.service")
    return Condition(
        kind="unit_loop", owner=ConditionOwner("unit", "web.service"), severity="critical",
        since_ns=since_ns, statement=statement, trend="10 restarts in 10 min",
        steps=(Action("look", Target("unit", "web.service"), note="why does it end?", view=look),),
        show=look,
    )  # fmt: skip


def with_conditions(diagnosis: Diagnosis, *conditions: Condition) -> Diagnosis:
    diagnosis.conditions = list(conditions)
    return diagnosis


def test_every_form_of_a_report_has_conditions_after_the_incidents() -> None:
    for text in told(with_conditions(made(reset(event())), lasting())):
        assert "critical" in text
        assert text.index("Trigger reset is on") < text.index("web.service loops: x")
        assert "look at unit web.service" in " ".join(text.split())
        assert "nodescope audit --at 2026-" in text


def test_a_condition_alone_is_no_silence() -> None:
    for text in told(with_conditions(made(), lasting())):
        assert "othing" not in text.replace("nothing of it was done", "")
    assert not with_conditions(made(), lasting()).healthy
    assert made().healthy


def test_a_condition_is_wrapped_and_not_cut() -> None:
    """Three conditions that differed in their ends were cut to one text."""
    long = lasting(statement="web.service loops: " + "word " * 60 + "that matters")
    lines = render_text(with_conditions(made(), long, lasting(None))).splitlines()
    assert lines[0] == "Conditions (no incident):"
    assert all(len(line) <= 100 for line in lines if "$ " not in line)
    assert "that matters" in " ".join(line.strip() for line in lines)
    assert "…" not in "".join(lines)
    assert sum("seen first at" in line for line in lines) == 1  # of the one with a time


def test_conditions_that_read_the_same_are_told_once() -> None:
    text = render_text(with_conditions(made(), lasting(), lasting(), lasting(None)))
    assert text.count("web.service loops: x") == 2


def test_a_time_that_repeats_is_told_once() -> None:
    """`30 times: also at` gave the same moment four times in a row."""
    finding = replace(reset(event()), repeats=[AT, AT, AT, AT + 10**9])
    assert again(finding, 1).endswith("Z and 1 more")
    said = again(finding, 4)
    assert said.startswith("5 times: also at ")
    assert said.count(format_moment(AT)) == 1
    assert "more" not in said


def test_the_json_has_the_agreed_keys() -> None:
    document = diagnosis_document(with_conditions(made(), lasting(), lasting(None)))
    first, second = document["conditions"]
    assert list(first) == KEYS
    assert first["owner"] == {"kind": "unit", "name": "web.service"}
    assert (first["since"], second["since"]) == ("2026-05-28T20:26:40.000Z", None)
    assert first["show"].startswith("nodescope audit --at ")
    assert first["steps"][0]["command"] == first["show"]


def test_a_condition_of_the_root_that_is_not_blamed_only_refers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nodescope.diagnosis.lasting.find_conditions", lambda *_: [lasting()])
    link = Link("limit", "web.service", "reached", 3.0, View("events"))
    chain = Chain((link,), Root("unit", "web.service"))
    nothing = Recording([])
    (shared,) = find_lasting(nothing, Window(0, 1), [reset(chain)])
    assert shared.reference == "see also incident 1"
    (other,) = find_lasting(nothing, Window(0, 1), [reset(event())])
    assert other.reference == ""


def test_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    healthy, loop = (
        next(each for each in BUNDLES if each.stem == name)
        for name in ("busy-healthy", "loop-without-leak")
    )
    assert main(["diagnose", "--archive", str(healthy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conditions"] == []
    assert main(["diagnose", "--archive", str(loop), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["findings"] == []
    assert [each["owner"]["name"] for each in document["conditions"]] == ["loops.service"]
    assert main(["diagnose", "--archive", str(loop)]) == 1
    assert "nothing" not in capsys.readouterr().out.split("missing:")[0]
