"""Recordings of real Kubernetes nodes: two pods in CrashLoopBackOff, and a node that is well."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Diagnosis
from nodescope.judgement.recorded_audit import RecordedAudit, audit_recording
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

FOLDER = Path(__file__).parent / "kubernetes"
LOOPS = ("default/billing-worker/worker", "default/report-builder/render")


@pytest.fixture(scope="module")
def sick() -> Recording:
    return Recording.open(FOLDER / "crash-loops.bundle")


def solve(recording: Recording, from_s: int = 0) -> Diagnosis:
    extent = recording.extent
    return diagnose(recording, Window(extent.from_ns + from_s * SECOND_NS, extent.to_ns))


def test_both_are_recorded_as_loops_by_pod_and_container(sick: Recording) -> None:
    whole = Window(sick.extent.from_ns, sick.extent.to_ns)
    events = sick.events(whole, "container_loop")
    assert sorted(event.subject for event in events) == sorted(LOOPS)


@pytest.mark.parametrize("second", [60, 150, 325])
def test_the_audit_of_a_moment_lists_both_also_while_the_kubelet_waits(
    sick: Recording, second: int
) -> None:
    """The last starts lie 2 minutes before the end: the kubelet waits longer each time."""
    found = audit_recording(sick, sick.extent.from_ns + second * SECOND_NS)
    assert isinstance(found, RecordedAudit)
    judged = {each.name: each.verdict for each in found.audit.findings}
    assert judged == dict.fromkeys(LOOPS, "looping")


def test_the_pod_at_its_limit_is_the_incident_and_both_loops_are_conditions(
    sick: Recording,
) -> None:
    found = solve(sick)
    (finding,) = found.findings
    chain = finding.chains[0]
    assert finding.symptom.kind == "oom_kill"
    assert len(finding.repeats) == 5
    assert (chain.root.kind, chain.root.name) == ("pod", "default/report-builder")
    assert chain.mechanism == "memory_limit"
    said = " | ".join(link.statement for link in chain.links)
    assert "32 MiB, was reached" in said
    # The kernel writes the path from the root of the machine; the recorder has the end of it.
    assert "/ns-" not in said
    assert "how it grew was not recorded" not in said
    assert {(each.kind, each.owner.kind, each.owner.name) for each in found.conditions} == {
        ("container_loop", "pod", "default/billing-worker (worker)"),
        ("container_loop", "pod", "default/report-builder (render)"),
    }
    (oom,) = (each for each in found.conditions if "report" in each.owner.name)
    assert oom.reference == "see also incident 1"


def test_a_part_without_any_restart_still_has_both_conditions(sick: Recording) -> None:
    found = solve(sick, from_s=230)
    assert found.findings == []
    assert {each.kind for each in found.conditions} == {"container_loop"}
    assert len(found.conditions) == 2


def test_a_node_with_two_pods_that_are_well_is_silent() -> None:
    found = solve(Recording.open(FOLDER / "healthy.bundle"))
    assert found.findings == []
    assert found.conditions == []
