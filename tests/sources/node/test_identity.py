from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.errors import SourceAbsent
from nodescope.sources.node.identity import read_core_lives


def _cores(sys: Path, online: str, *cores: int) -> None:
    folder = sys / "devices/system/cpu"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "online").write_text(online)
    for cpu in cores:
        (folder / f"cpu{cpu}/topology").mkdir(parents=True)


def test_a_core_that_was_offline_has_another_life(tmp_path: Path) -> None:
    _cores(tmp_path, "0-1\n", 0, 1)
    before = read_core_lives(tmp_path)
    assert read_core_lives(tmp_path) == before
    topology = tmp_path / "devices/system/cpu/cpu1/topology"
    topology.rename(tmp_path / "kept")  # so that its inode is not used again
    topology.mkdir()
    after = read_core_lives(tmp_path)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_cores_without_topology_live_for_ever(tmp_path: Path) -> None:
    _cores(tmp_path, "0,2\n")
    assert read_core_lives(tmp_path) == {0: 0, 2: 0}


def test_a_tree_without_cores(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_core_lives(tmp_path)
