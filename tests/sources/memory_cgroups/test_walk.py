from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.memory_cgroups.trees import V1Tree

from nodescope.errors import SourceAbsent
from nodescope.sources.memory_cgroups.hierarchy import find_memory_hierarchy
from nodescope.sources.memory_cgroups.walk import (
    INTERVAL_NS,
    SLOW_INTERVAL_NS,
    SLOW_NS,
    WalkPace,
    probe_walk,
)


def test_the_probe_reads_numa_stat_else_stat(tmp_path: Path) -> None:
    tree = V1Tree(tmp_path)
    hierarchy = find_memory_hierarchy(tree.places)
    walk = probe_walk(hierarchy)
    assert walk.file.endswith("/memory.numa_stat")
    assert walk.took_ns >= 0
    (tree.mount / "memory.numa_stat").unlink()
    assert probe_walk(hierarchy).file.endswith("/memory.stat")
    (tree.mount / "memory.stat").unlink()
    with pytest.raises(SourceAbsent):
        probe_walk(hierarchy)


def test_a_read_that_was_slow_once_is_rare_from_then_on() -> None:
    pace = WalkPace()
    assert pace.is_due(0)
    pace.took(0, SLOW_NS)
    assert not pace.is_due(INTERVAL_NS - 1)
    assert pace.is_due(INTERVAL_NS)
    pace.took(INTERVAL_NS, SLOW_NS + 1)
    assert not pace.is_due(INTERVAL_NS + SLOW_INTERVAL_NS - 1)
    now = INTERVAL_NS + SLOW_INTERVAL_NS
    assert pace.is_due(now)
    pace.took(now, 10)
    assert not pace.is_due(now + INTERVAL_NS)
