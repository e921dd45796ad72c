from __future__ import annotations

from dataclasses import replace

import pytest

from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Link, Root, Symptom
from nodescope.judgement.condition import Condition, ConditionOwner
from nodescope.lab.scenario import LastingTruth, Truth
from nodescope.lab.score import blames_another, judge, list_causes
from nodescope.records.event_details import OomKillDetails
from nodescope.records.view import View

LOOP = LastingTruth(("unit_loop",), "unit", "a.service")
KILLED = Truth(
    "memory-limit-loop", healthy=False, finding=True, roots=("a.service",), root_kinds=("unit",),
    symptoms=("oom_kill",), well=("b.service",), conditions=(LOOP,),
)  # fmt: skip
SYMPTOM = Symptom("core_held", 0, "core 1", "core 1 was pegged")
LINK = Link("core", "core 1", "core 1 was pegged", 2.0, View("cores"))


def diagnosis(*told: tuple[str, str, str | None]) -> Diagnosis:
    chains = [Chain((LINK,), Root(kind, name), mechanism) for kind, name, mechanism in told]
    return Diagnosis(0, 1, [Finding(SYMPTOM, [chain]) for chain in chains])


@pytest.mark.parametrize(
    "told",
    [
        (),
        (("process", "lab-faults", "page_faults"),),
        (("cgroup", "/nodescope-lab-7", "direct_reclaim"),),
        (("process", "lab-huge", "huge_page_clearing"), ("process", "lab-huge", None)),
    ],
)
def test_a_decoy_told_by_its_own_name_is_blamed_on_nobody(
    told: tuple[tuple[str, str, str | None], ...],
) -> None:
    assert not blames_another(diagnosis(*told))
    assert not blames_another(Diagnosis(0, 1, [Finding(SYMPTOM, [])]))


@pytest.mark.parametrize(
    "told",
    [
        (("unit", "loops.service", "page_faults"),),
        (("process", "lab-faults", "page_faults"), ("container", "web", None)),
        (("pod", "default/web", "direct_reclaim"),),
        (("state", "zombie memory cgroups", "memcg_rstat"),),
        (("cgroup", "/nodescope-lab-7", "memcg_walk_by_reclaim"),),
    ],
)
def test_zombies_units_and_containers_are_others(
    told: tuple[tuple[str, str, str | None], ...],
) -> None:
    assert blames_another(diagnosis(*told))


def tell(
    root: tuple[str, str] | None,
    *lasting: tuple[str, str, str],
    symptom: str = "oom_kill",
    also: tuple[str, ...] = (),
) -> Diagnosis:
    """A diagnosis with one incident, if any, and conditions as kind, owner's kind and name."""
    found = diagnosis(*([] if root is None else [(*root, None)]))
    for each in found.findings:
        each.symptom = replace(SYMPTOM, kind=symptom)
        each.also = [replace(SYMPTOM, kind=kind) for kind in also]
    found.conditions = [
        Condition(
            kind=kind, owner=ConditionOwner(of, name), severity="warning", since_ns=None,
            statement="", trend="", steps=(), show=View("cores"),
        )
        for kind, of, name in lasting
    ]  # fmt: skip
    return found


UNIT, LISTED = ("unit", "a.service"), ("unit_loop", "unit", "a.service")


@pytest.mark.parametrize(
    "found",
    [
        tell(UNIT, LISTED),
        tell(UNIT, LISTED, symptom="job_failed", also=("oom_kill",)),
        tell(UNIT, LISTED, ("zombies", "node", "node")),
    ],
)
def test_the_true_owner_symptom_and_condition_are_right(found: Diagnosis) -> None:
    assert judge(KILLED, found).right


@pytest.mark.parametrize(
    "found",
    [
        tell(None, LISTED),
        tell(UNIT),  # the condition is not listed
        tell(UNIT, ("unit_failed", "unit", "a.service")),
        tell(UNIT, ("unit_loop", "container", "a.service")),
        tell(("process", "a.service"), LISTED),
        tell(("unit", "c.service"), LISTED),
        tell(UNIT, LISTED, symptom="hung_task"),
        tell(("unit", "b.service"), LISTED),
        tell(UNIT, LISTED, ("unit_failed", "unit", "b.service")),  # who is well has a condition
    ],
)
def test_another_owner_symptom_or_condition_is_wrong(found: Diagnosis) -> None:
    assert not judge(KILLED, found).right


def test_a_condition_without_an_incident() -> None:
    truth = replace(KILLED, finding=False, never=("a.service",))
    assert judge(truth, tell(None, LISTED)).right
    assert not judge(truth, tell(None)).right
    assert not judge(truth, tell(UNIT, LISTED)).right  # it lasts, and harmed nobody


def test_a_healthy_twin_has_neither_incident_nor_condition() -> None:
    twin = Truth("memory-limit-loop", healthy=True, finding=False)
    assert judge(twin, tell(None)).right
    assert not judge(twin, tell(UNIT)).right
    assert not judge(twin, tell(None, ("zombies", "node", "node"))).right


def test_what_was_said_has_all_of_it() -> None:
    found = tell(UNIT, LISTED)
    found.findings.append(Finding(replace(SYMPTOM, kind="hung_task"), []))
    said = judge(KILLED, found).said
    assert said == (
        "unit a.service by None; hung_task without a cause; condition unit_loop of a.service"
    )


def killed_in(cgroup: str, root: str) -> Finding:
    told = OomKillDetails(memcg=cgroup)
    symptom = Symptom("oom_kill", 0, "x", "x was killed", details=told)
    return Finding(symptom, [Chain((LINK,), Root("unit", root))])


def test_an_incident_outside_the_lab_is_told_and_not_judged() -> None:
    decoy = Truth("page-faults", healthy=False, finding=False)
    others = Diagnosis(0, 1, [killed_in("/kubepods/pod1", "kubelet.service")])
    verdict = judge(decoy, others)
    assert verdict.right
    assert "not the lab's: unit kubelet.service" in verdict.said
    assert not blames_another(others)
    assert not list_causes(decoy, others)
    inside = Diagnosis(0, 1, [killed_in("/nodescope-lab-7/a.service", "a.service")])
    assert not judge(decoy, inside).right
    assert list_causes(decoy, inside) == [(LINK.probability, False)]


def test_a_place_calibrates_nothing() -> None:
    found = Diagnosis(0, 1, [Finding(SYMPTOM, [Chain((LINK,), Root("core", "cpu1"))])])
    assert list_causes(KILLED, found) == []
