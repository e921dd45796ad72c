"""Two units loop in one slice: one leaks slowly, one loops fast and leaks nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.diagnosis.test_diagnose import SHAPE, without

from nodescope.cli.main import main
from nodescope.diagnosis.report.text import render_text
from nodescope.lab import synthetic
from nodescope.lab.score import solve
from nodescope.records.node_tables import CgroupChurnRow, DyingParentRow, MemoryCgroupsRow, UnitRow
from nodescope.records.recorder_tables import EventRow
from nodescope.records.view_forms import render_command

LEAKY, INNOCENT = "slow-leaker.service", "innocent.service"
EVERY_S = {LEAKY: 150, INNOCENT: 2}
ENDED = {LEAKY: 9050, INNOCENT: 8000}  # since boot
PILE = 9000


class _TwoLoopers(synthetic._Story):
    """The synthetic node with these two in the place of its agent."""

    def _memory(self, start: int, length: int) -> None:
        for second in range(start, start + length, 10):
            at = self.at(second)
            self._append([
                MemoryCgroupsRow(time_ns=at, version="v1", tracked=PILE + 340, visible=240,
                                 dying=PILE + 100)
            ])  # fmt: skip
            self._append([self._churn(second, name) for name in EVERY_S])
        self._append([
            DyingParentRow(time_ns=self.at(start), path="/system.slice", dying=PILE, kind="shmem",
                           held_bytes=4096 * PILE)
        ])  # fmt: skip

    def _churn(self, second: int, name: str) -> CgroupChurnRow:
        ended = sum(each % EVERY_S[name] == 0 for each in range(max(0, second - 10), second))
        stay = len(range(0, max(0, second - 60), EVERY_S[name])) if name == LEAKY else 0
        return CgroupChurnRow(
            time_ns=self.at(second), parent="/system.slice", pattern=name, maker="systemd",
            maker_pid=1, workload="(sh)", made=ended, removed=ended, released=ended,
            attached=ended, unreleased=stay, way="tracepoints",
        )  # fmt: skip

    def _units(self, start: int) -> None:
        self._append([
            UnitRow(time_ns=self.at(start), unit=name, load="loaded", active="activating",
                    sub="auto-restart", result="exit-code", restarts=1, file_state="enabled",
                    preset="enabled", vendor="vendor", wanted_by="multi-user.target",
                    why_not_started="started", cgroup=f"/system.slice/{name}", starts=ended,
                    failures=ended, successes=0)
            for name, ended in ENDED.items()
        ])  # fmt: skip

    def _containers(self, start: int, length: int) -> None:
        self._append([
            EventRow(time_ns=self.at(second), kind="unit_exit", subject=name, message="ended",
                     details='{"exit_status":1}')
            for second in range(start, start + length)
            for name, every_s in EVERY_S.items()
            if second % every_s == 0
        ])  # fmt: skip


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "archive"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "_Story", _TwoLoopers)
        synthetic.write_story(path, SHAPE)
    return path


def test_the_one_that_leaks_is_named_and_the_other_ruled_out(recording: Path) -> None:
    (finding,) = solve(recording).findings
    assert [chain.root.name for chain in finding.chains] == [LEAKY]
    innocent = next(each for each in finding.ruled_out if INNOCENT in each.name)
    assert "ruled out because none of its own cgroups stayed" in innocent.statement
    assert "ended 501 times in the 16m 40s before" in innocent.statement  # not those after


def test_what_shows_the_innocence_can_be_opened(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (finding,) = solve(recording).findings
    innocent = next(each for each in finding.ruled_out if INNOCENT in each.name)
    assert innocent.show is not None
    assert main(shlex.split(render_command(innocent.show, recording))[1:]) == 0
    shown = capsys.readouterr().out
    assert shown.count(INNOCENT) > 10
    assert LEAKY not in shown


def test_without_tracepoints_they_are_told_as_two_that_cannot_be_told_apart(
    recording: Path, tmp_path: Path
) -> None:
    found = solve(without(recording, tmp_path / "a", "cgroup_churn"))
    (finding,) = found.findings
    assert {chain.root.name for chain in finding.chains} == {LEAKY, INNOCENT}
    one, other = finding.chains
    assert one.confidence == other.confidence <= 0.5  # only one of them can be it
    assert not any(INNOCENT in each.name for each in finding.ruled_out)
    assert any(each.what == "cgroup_churn" for each in found.missing)
    assert "nothing that was recorded tells it from" in render_text(found).replace("\n", " ")
