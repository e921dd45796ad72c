from __future__ import annotations

import pytest

from nodescope.lab.judging import blames_another


@pytest.mark.parametrize(
    "said",
    [
        "nothing",
        "a symptom without a cause",
        "process lab-faults by page_faults",
        "cgroup /nodescope-lab-7 by direct_reclaim",
        "process lab-huge by huge_page_clearing; process lab-huge by None",
    ],
)
def test_a_decoy_told_by_its_own_name_is_blamed_on_nobody(said: str) -> None:
    assert not blames_another(said)


@pytest.mark.parametrize(
    "said",
    [
        "unit loops.service by page_faults",
        "process lab-faults by page_faults; container web by None",
        "pod default/web by direct_reclaim",
        "state zombie memory cgroups by memcg_rstat",
        "cgroup /nodescope-lab-7 by memcg_walk_by_reclaim",
    ],
)
def test_zombies_units_and_containers_are_others(said: str) -> None:
    assert blames_another(said)
