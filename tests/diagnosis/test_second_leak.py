"""A second parent leaks beside the first: it is named, and counts are per source (issue 13)."""

from __future__ import annotations

import pytest
from tests.diagnosis.test_diagnose import SHAPE

from nodescope.diagnosis.finding import Chain
from nodescope.diagnosis.report.summary import path_of
from nodescope.lab import synthetic
from nodescope.lab.score import solve
from nodescope.records.node_tables import CgroupChurnRow

SECOND, STAYED = "/batch.slice", 520


class _SecondLeak(synthetic._Story):
    """The synthetic node, with another parent below which removed cgroups stay."""

    def _memory(self, start: int, length: int) -> None:
        super()._memory(start, length)
        self._append([
            CgroupChurnRow(
                time_ns=self.at(second), parent=SECOND, pattern="job-*", maker="batchd",
                maker_pid=77, workload="job", made=5, removed=5, released=0, attached=5,
                unreleased=STAYED, way="tracepoints",
            )
            for second in range(start, start + length, 10)
        ])  # fmt: skip


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    path = tmp_path_factory.mktemp("second") / "archive"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "_Story", _SecondLeak)
        synthetic.write_story(path, SHAPE)
    return solve(path).findings[0].chains[0]


def test_the_other_source_is_named(chain: Chain) -> None:
    (parent,) = (link for link in chain.links if link.kind == "parent")
    assert f"another source: {STAYED} were removed below {SECOND}" in parent.statement


def test_the_way_in_one_line_counts_what_lies_below_that_parent(chain: Chain) -> None:
    (parent,) = (link for link in chain.links if link.kind == "parent")
    assert f"zombies below {parent.subject} →" in path_of(chain)


def test_the_second_leak_refutes_nothing_that_is_said_of_the_first(chain: Chain) -> None:
    for kind in ("parent", "source"):
        (link,) = (each for each in chain.links if each.kind == kind)
        (parent,) = (each for each in chain.links if each.kind == "parent")
        assert f"below {parent.subject}" in link.refute
