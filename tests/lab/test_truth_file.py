from __future__ import annotations

import json
from pathlib import Path

from nodescope.lab.scenario import LastingTruth, Truth
from nodescope.lab.truth_file import read_truth, truth_path, write_truth

TRUTH = Truth(
    "memory-limit-loop", healthy=False, finding=True, roots=("a.service",), root_kinds=("unit",),
    symptoms=("oom_kill",), well=("b.service",), facts={"seed": 7},
    conditions=(LastingTruth(("unit_loop",), "unit", "a.service"),),
)  # fmt: skip


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_truth(tmp_path / "archive", TRUTH)
    assert read_truth(tmp_path / "archive") == TRUTH


def test_a_truth_of_an_earlier_version_lacks_what_was_not_asked(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    write_truth(archive, TRUTH)
    content = json.loads(truth_path(archive).read_text())
    for field in ("conditions", "symptoms", "root_kinds"):
        del content[field]
    truth_path(archive).write_text(json.dumps(content))
    read = read_truth(archive)
    assert read.roots == ("a.service",)
    assert read.conditions == ()
    assert read.symptoms == read.root_kinds == ()
