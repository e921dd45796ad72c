from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.sources.cgroups.maker_cgroups import MakerCgroups
from nodescope.sources.cgroups.paths_by_id import CgroupPaths

UNIT = "/system.slice/leaky.service"


@pytest.fixture
def makers(tmp_path: Path) -> MakerCgroups:
    return MakerCgroups(tmp_path, CgroupPaths(None))


def _process(proc: Path, pid: int, cgroups: str) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "cgroup").write_text(cgroups)


def test_on_v2_the_id_of_the_hit_is_enough(makers: MakerCgroups) -> None:
    makers.learn(77, UNIT)
    assert makers.find(5, 77) == UNIT


def test_an_id_is_certain_where_the_number_belongs_to_another_by_now(
    tmp_path: Path, makers: MakerCgroups
) -> None:
    makers.learn(77, UNIT)
    _process(tmp_path, 5, "0::/user.slice\n")
    assert makers.find(5, 77) == UNIT


def test_on_v1_the_process_is_asked_while_it_lives(tmp_path: Path, makers: MakerCgroups) -> None:
    makers.learn(1, "/")
    _process(tmp_path, 5, f"9:name=systemd:{UNIT}\n4:memory:{UNIT}\n0::/\n")
    assert makers.find(5, 1) == UNIT
    assert makers.find(5, 0) == UNIT  # before v5.7


def test_on_v1_a_maker_that_has_ended_is_where_its_script_is(
    tmp_path: Path, makers: MakerCgroups
) -> None:
    makers.learn(1, "/")
    makers.is_born(6, 5)  # a subshell
    makers.is_born(7, 6)  # its mkdir
    _process(tmp_path, 5, f"9:name=systemd:{UNIT}\n")
    assert makers.find(7, 1) == UNIT


def test_forebears_are_learnt_of_many_at_once(tmp_path: Path, makers: MakerCgroups) -> None:
    makers.is_born(6, 99)
    makers.learn_parents({6: 5, 7: 6, **dict.fromkeys(range(100, 4000), 1)})
    _process(tmp_path, 5, f"0::{UNIT}\n")
    assert makers.find(7, 0) == UNIT


def test_a_number_that_is_used_again_is_another_process(
    tmp_path: Path, makers: MakerCgroups
) -> None:
    makers.is_born(7, 5)
    _process(tmp_path, 5, f"0::{UNIT}\n")
    assert makers.find(7, 0) == UNIT
    makers.is_born(7, 8)
    assert makers.find(7, 0) is None


def test_nothing_is_said_of_a_maker_of_which_nothing_is_known(makers: MakerCgroups) -> None:
    assert makers.find(7, 0) is None
    makers.learn(1, "/")
    assert makers.find(7, 1) == "/"


def test_in_a_flood_of_makers_not_all_are_read(tmp_path: Path, makers: MakerCgroups) -> None:
    for pid in range(1, 400):
        _process(tmp_path, pid, f"0::{UNIT}\n")
    found = [makers.find(pid, 0) for pid in range(1, 400)]
    assert found[0] == UNIT
    assert found[-1] is None
    makers.forget_found()
    assert makers.find(399, 0) == UNIT
