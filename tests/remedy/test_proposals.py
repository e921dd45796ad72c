from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.report.document import diagnosis_document
from nodescope.errors import UsageError
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.json import JsonObject
from nodescope.remedy.proposals import Proposals, read_proposals, wish_to_stop

BUNDLES = Path(__file__).parents[1] / "diagnosis/bundles"


def _document(name: str) -> JsonObject:
    recording = Recording.open(BUNDLES / f"{name}.bundle")
    window = Window(recording.extent.from_ns, recording.extent.to_ns)
    found: JsonObject = json.loads(json.dumps(diagnosis_document(diagnose(recording, window))))
    return found


def _kinds(proposals: Proposals) -> list[tuple[str, str | None]]:
    return [
        (each.action.kind, each.action.target.name if each.action.target else None)
        for each in proposals.taken
    ]


def _diagnosis(*steps: JsonObject, confidence: float = 0.9) -> JsonObject:
    return {
        "findings": [
            {
                "symptom": {"statement": "the job failed"},
                "chains": [
                    {
                        "confidence": confidence,
                        "root": {"kind": "unit", "name": "agent.service"},
                        "steps": [{"action": step} for step in steps],
                        "fix_steps": [],
                    }
                ],
            }
        ],
        "conditions": [],
    }


STOP: JsonObject = {"kind": "stop_unit", "target": {"kind": "unit", "name": "agent.service"}}


def test_a_leak_is_stopped_before_it_is_freed() -> None:
    found = _kinds(read_proposals(_document("zombie-agent")))
    assert found.index(("stop_unit", "leaky.service")) < found.index(("free_zombies", None))
    assert len(found) == len(set(found))


def test_a_unit_whose_limit_is_raised_is_not_stopped() -> None:
    proposals = read_proposals(_document("memory-limit-loop"))
    assert "raise_limit" in {kind for kind, _ in _kinds(proposals)}
    assert "stop_unit" not in {kind for kind, _ in _kinds(proposals)}
    assert any("is not stopped" in each for each in proposals.left_out)


def test_a_healthy_node_proposes_nothing() -> None:
    assert read_proposals(_document("zombie-agent-healthy")) == Proposals(())


def test_looking_is_no_step() -> None:
    look: JsonObject = {"kind": "look", "target": {"kind": "unit", "name": "agent.service"}}
    assert _kinds(read_proposals(_diagnosis(look, STOP))) == [("stop_unit", "agent.service")]


def test_an_unlikely_cause_is_left_alone_and_named() -> None:
    proposals = read_proposals(_diagnosis(STOP, confidence=0.4))
    assert proposals.taken == ()
    assert "unit agent.service" in proposals.left_out[0]
    assert "40%" in proposals.left_out[0]


def test_the_reason_names_symptom_and_cause() -> None:
    (proposal,) = read_proposals(_diagnosis(STOP)).taken
    assert proposal.why == "the job failed; cause: unit agent.service (90% sure)"


@pytest.mark.parametrize(
    "document",
    [{}, {"findings": 3, "conditions": []}, {"findings": [], "conditions": "x"}],
)
def test_other_json_is_refused(document: JsonObject) -> None:
    with pytest.raises(UsageError, match="not a diagnosis"):
        read_proposals(document)


def test_an_unknown_action_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="explode"):
        read_proposals(_diagnosis({"kind": "explode"}))


def test_a_person_may_name_units_and_containers() -> None:
    assert _kinds(wish_to_stop(["a.service", "b.service"], ["web"])) == [
        ("stop_unit", "a.service"),
        ("stop_unit", "b.service"),
        ("stop_container", "web"),
    ]
