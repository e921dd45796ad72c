from __future__ import annotations

import pytest

from nodescope.diagnosis.finding import Chain, Diagnosis, Finding, Link, Root, Symptom
from nodescope.lab.score import blames_another
from nodescope.records.view import View

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
