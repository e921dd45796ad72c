from __future__ import annotations

from pathlib import Path

from nodescope.archive.reader import Archive
from nodescope.archive.source_costs import read_source_costs
from nodescope.archive.status import summarise
from nodescope.archive.writer import ArchiveWriter
from nodescope.cli.status import render_summary
from nodescope.quantities import SECOND_NS


class HandClock:
    now_ns = 100 * SECOND_NS

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns


def _write(root: Path) -> Archive:
    with ArchiveWriter.open(root, node={"name": "n"}, clock=HandClock(), tick_ns=1000) as writer:
        for second, costs in ((110, (1, 9)), (200, (50, 20))):
            writer.append(
                "source_costs",
                {
                    "time_ns": [second * SECOND_NS] * 2,
                    "source": ["cheap", "dear"],
                    "cpu_ns": [cost * 1_000_000 for cost in sorted(costs)],
                    "reads": [10, 20],
                    "failures": [0, 3],
                    "interval_ns": [SECOND_NS, 2 * SECOND_NS],
                    "slowest_ns": [1000, 2000],
                },
            )
    return Archive.open(root)


def test_the_latest_of_each_dearest_first(tmp_path: Path) -> None:
    costs = read_source_costs(_write(tmp_path / "archive").segments())
    assert [cost.source for cost in costs] == ["dear", "cheap"]
    assert costs[0].cpu_ns == 50_000_000
    assert costs[0].cpu_ratio == 0.0005  # 50 ms in the 100 s since the recorder started


def test_status_shows_them(tmp_path: Path) -> None:
    archive = _write(tmp_path / "archive")
    shown = render_summary(archive.root, summarise(archive), 0).splitlines()
    (line,) = [line for line in shown if line.startswith("dear")]
    assert line.split() == ["dear", "0.050", "%", "2", "s", "2", "µs", "3", "of", "20"]


def test_where_nothing_was_observed_there_are_none(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    ArchiveWriter.open(root, node={}, clock=HandClock(), tick_ns=1000).close()
    assert read_source_costs(Archive.open(root).segments()) == []
