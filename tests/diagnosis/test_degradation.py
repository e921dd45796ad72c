"""Whatever is removed from a recording, its diagnosis says less and never more."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.diagnosis.test_ways import (
    FROZEN,
    HOG,
    QUEUE,
    RESET,
    UNIT,
    blocked,
    cores,
    hung,
    oom,
    trace,
)
from tests.diagnosis.told import at, event, lines, memory, record

from nodescope.diagnosis.diagnose import diagnose
from nodescope.diagnosis.finding import Diagnosis, Root
from nodescope.judgement.condition import Condition, ConditionOwner
from nodescope.lab.degradation import degrade, find_violations
from nodescope.lab.synthetic import Shape, write_story
from nodescope.recording.memory import hold_in_memory
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.node_tables import CgroupNameRow, CgroupRow
from nodescope.records.table import Row
from nodescope.records.view import View
from nodescope.records.witness_tables import CallTraceRow, LimitRow

HERE = Path(__file__).parent
BUNDLES = sorted((HERE / "bundles").glob("*.bundle"))
SEEDS = range(4)  # of each bundle; `python -m benchmarks degradation` tries 2,000 in all


@cache
def of_bundle(path: Path) -> tuple[Recording, Diagnosis]:
    recording = hold_in_memory(Recording.open(path))
    return recording, diagnosed(recording, recording)


def diagnosed(recording: Recording, whole: Recording) -> Diagnosis:
    return diagnose(recording, Window(whole.extent.from_ns, whole.extent.to_ns))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.stem)
def test_a_bundle_with_less_in_it_says_no_more(bundle: Path, seed: int) -> None:
    whole, before = of_bundle(bundle)
    less = degrade(whole, seed)
    assert list(find_violations(before, diagnosed(less.recording, whole), less)) == [], less.said


def test_the_story_with_less_in_it_says_no_more(tmp_path: Path) -> None:
    write_story(tmp_path / "story", Shape().small())
    whole = hold_in_memory(Recording.open(tmp_path / "story"))
    before = diagnosed(whole, whole)
    for seed in range(24):
        less = degrade(whole, seed)
        found = list(find_violations(before, diagnosed(less.recording, whole), less))
        assert found == [], less.said


def told() -> dict[str, Recording]:
    """A recording of each way, made of rows."""
    mib = 1 << 20
    names = CgroupNameRow(time_ns=at(1), cgroup=UNIT, kind="unit", unit="eater.service")
    tasks: list[Row] = [CgroupRow(time_ns=at(10 * n), cgroup=UNIT, tasks=20 * n) for n in range(10)]
    disk = event(90, "disk_io_error", "sda", "I/O error, dev sda, sector 5", device="sda")
    files = event(91, "fs_error", "sda1", "EXT4-fs error (device sda1)", device="sda1")
    pids = LimitRow(time_ns=at(90), name="pids", scope=UNIT, used=200, most=200)
    walk = "do_syscall_64;vfs_read;memcg_numa_stat_show;mem_cgroup_nr_lru_pages"
    lockup = (100, "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kubelet:812]")
    traced = CallTraceRow(time_ns=at(100), sequence=9, cpu=3, pid=812, comm="kubelet", stack=walk)
    grown = memory(UNIT, *((10 * n, (20 + 8 * n) * mib) for n in range(10)), limit=100 * mib)
    return {
        "memory": record([oom(95, UNIT), oom(98, UNIT)], [names, *grown]),
        "tasks": record([event(95, "pids_limit", UNIT, cgroup=UNIT)], [*tasks, pids]),
        "blocked": record([hung()], [names, blocked(98, FROZEN), trace(100, FROZEN, pid=321)]),
        "disk": record([disk, files, hung(95)], [trace(95, "jbd2_log_wait_commit", pid=321)]),
        "real-time": record(lines(*RESET), [QUEUE, HOG, *cores(1, 92, 100)]),
        "lockup": record(lines(lockup), [traced]),
    }


@pytest.mark.parametrize("name", told())
def test_every_way_with_less_to_go_by_says_no_more(name: str) -> None:
    whole = told()[name]
    before = diagnosed(whole, whole)
    assert before.findings[0].chains[0].explains
    for seed in range(30):
        less = degrade(whole, seed)
        found = list(find_violations(before, diagnosed(less.recording, whole), less))
        assert found == [], less.said


def test_a_claim_of_absence_rests_on_what_was_observed() -> None:
    """Core time is removed, and the claim about it stays as it was."""
    whole = record(lines(*RESET), [QUEUE, *cores(1, 0, 0)])
    before = diagnosed(whole, whole)
    (claim,) = [each for each in before.missing if each.absent is not None]
    assert claim.absent is not None
    assert claim.absent.table == "cores"
    less = next(each for seed in range(100) if "table cores" in (each := degrade(whole, seed)).said)
    assert f"not observed: {claim.consequence}" in list(find_violations(before, before, less))
    assert list(find_violations(before, diagnosed(less.recording, whole), less)) == []


@pytest.mark.parametrize("change", ["root", "condition", "confidence", "incident"])
def test_whatever_is_stronger_is_noticed(change: str) -> None:
    whole = told()["memory"]
    known = diagnosed(whole, whole)
    more = deepcopy(known)
    finding = more.findings[0]
    (chain, *_) = finding.chains
    if change == "root":
        weak = replace(chain.links[-1], strength=0.1)
        finding.chains.append(replace(chain, links=(weak,), root=Root("unit", "other.service")))
    elif change == "condition":
        look = View("audit")
        more.conditions.append(Condition(
            kind="unit_loop", owner=ConditionOwner("unit", "x"), severity="warning", since_ns=None,
            statement="x loops", trend="", steps=(), show=look,
        ))  # fmt: skip
    elif change == "confidence":
        known.findings[0].chains[0] = replace(chain, share=0.9)
    else:
        finding.symptom = replace(finding.symptom, subject="another")
    assert list(find_violations(known, more, degrade(whole, 0)))
    assert not list(find_violations(known, known, degrade(whole, 0)))


def test_a_stronger_statement_is_noticed() -> None:
    """The comparison itself can fail: less and whole exchanged."""
    whole = told()["memory"]
    less = next(
        each for seed in range(100) if "table events" in (each := degrade(whole, seed)).said
    )
    silent, told_of = diagnosed(less.recording, whole), diagnosed(whole, whole)
    assert silent.findings == []
    assert any("a root of its own" in each for each in find_violations(silent, told_of, less))
