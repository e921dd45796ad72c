"""Recordings of real runs of the lab on a two-core machine, kept small, with their truth."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodescope.analysis.window import Extent, Window
from nodescope.archive.reader import Archive
from nodescope.diagnosis.diagnose import diagnose
from nodescope.lab.judging import judge
from nodescope.lab.truth_file import read_truth

BUNDLES = Path(__file__).parent / "bundles"
NAMES = sorted(path.stem for path in BUNDLES.glob("*.bundle"))


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_is_diagnosed_as_it_was(name: str) -> None:
    segments = Archive.open(BUNDLES / f"{name}.bundle").segments()
    extent = Extent(segments)
    found = diagnose(segments, Window(extent.from_ns, extent.to_ns))
    verdict = judge(read_truth(BUNDLES / name), found)
    assert verdict.right, verdict.said
    assert found.missing == []  # everything was recorded


def test_there_are_incidents_decoys_and_a_healthy_twin() -> None:
    truths = [read_truth(BUNDLES / name) for name in NAMES]
    assert {"zombies", "zombie-agent", "starved-nic"} <= {
        truth.scenario for truth in truths if truth.finding
    }
    assert any(truth.healthy for truth in truths)
    assert sum(not truth.finding for truth in truths) >= 2
