from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nodescope.errors import UsageError
from nodescope.lab import (
    decoy_scenarios,
    guest,
    limit_scenarios,
    storage_scenarios,
)
from nodescope.lab.catalogue import SCENARIOS
from nodescope.lab.in_service import CONSENT
from nodescope.lab.refusals import check, count_fitting
from nodescope.sources.places import Places

ZOMBIES = replace(SCENARIOS["zombies"], require=lambda: None)


@pytest.fixture(autouse=True)
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv(CONSENT, raising=False)


@pytest.fixture
def node(tmp_path: Path) -> Places:
    """A large machine with a gigabyte free."""
    for number, comm in ((1, "process_api"), (2, "kthreadd")):
        (tmp_path / f"proc/{number}").mkdir(parents=True)
        (tmp_path / f"proc/{number}/comm").write_text(f"{comm}\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal: 64000000 kB\nMemAvailable: 1000000 kB\n")
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/possible").write_text("0-95\n")
    return Places(root=tmp_path)


def test_what_would_hurt_nobody_is_allowed(node: Places) -> None:
    check(ZOMBIES, 1000, consent=False, places=node)


def test_without_root_it_is_refused(node: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="needs root"):
        check(ZOMBIES, 100, consent=True, places=node)


@pytest.mark.parametrize(("name", "strength"), [("zombies", 1_000_000), ("starved-nic", 3)])
def test_too_much_or_too_little_is_refused(node: Places, name: str, strength: int) -> None:
    scenario = SCENARIOS[name]
    with pytest.raises(UsageError, match="a strength of") as refused:
        check(scenario, strength, consent=True, places=node)
    assert refused.value.hint == f"{scenario.least:,} to {scenario.most:,}"


def test_a_machine_that_serves_somebody_must_be_said_to_be_for_tests(
    node: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    (node.proc / "1/comm").write_text("init\n")
    with pytest.raises(UsageError, match="serves somebody: its first process is init") as refused:
        check(ZOMBIES, 1000, consent=False, places=node)
    assert "--yes" in (refused.value.hint or "")
    check(ZOMBIES, 1000, consent=True, places=node)
    monkeypatch.setenv(CONSENT, "1")
    check(ZOMBIES, 1000, consent=False, places=node)


def test_more_zombies_than_fit_are_refused_with_the_number_that_does(node: Places) -> None:
    fit = count_fitting(node)
    assert 1_800 < fit < 2_000  # half a gigabyte, 271 kB each
    check(ZOMBIES, fit, consent=True, places=node)
    with pytest.raises(UsageError, match="do not fit") as refused:
        check(ZOMBIES, fit + 1, consent=True, places=node)
    assert refused.value.hint == f"--strength {fit} would"


def test_one_core_has_nobody_to_wait_for(node: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    with pytest.raises(UsageError, match="locks needs two cores"):
        check(SCENARIOS["locks"], 4, consent=True, places=node)


def test_without_huge_pages_none_can_be_filled(
    node: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "enabled"
    monkeypatch.setattr(decoy_scenarios, "_HUGE_PAGES", setting)
    for text in ("always madvise [never]\n", None):
        setting.write_text(text) if text else setting.unlink()
        with pytest.raises(UsageError, match="no transparent huge pages"):
            check(SCENARIOS["huge-pages"], 4, consent=True, places=node)
    setting.write_text("always [madvise] never\n")
    check(SCENARIOS["huge-pages"], 4, consent=True, places=node)


def test_what_the_machine_lacks_is_said_before_anything_is_made(node: Places) -> None:
    def lack() -> None:
        raise UsageError("systemd is not installed")

    with pytest.raises(UsageError, match="systemd is not installed"):
        check(replace(ZOMBIES, require=lack), 1000, consent=True, places=node)


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("conntrack-full", "iptables"),
        ("disk-full", "mkfs.ext4"),
        ("blocked-writers", "fsfreeze"),
        ("container-loop", "dockerd"),
    ],
)
def test_a_program_that_is_missing_is_named(
    node: Places, monkeypatch: pytest.MonkeyPatch, name: str, program: str
) -> None:
    monkeypatch.setattr(guest, "require", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda each: None if each == program else f"/bin/{each}")
    with pytest.raises(UsageError, match=f"{program} is not installed"):
        check(SCENARIOS[name], SCENARIOS[name].strength, consent=True, places=node)


@pytest.mark.parametrize(
    ("count", "reason"), [(None, "tracks no connections"), ("50000\n", "tracks 50000 connections")]
)
def test_a_table_that_is_missing_or_in_use_is_not_lowered(
    node: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: str | None, reason: str
) -> None:
    monkeypatch.setattr(guest, "require", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda program: f"/bin/{program}")
    monkeypatch.setattr(limit_scenarios, "_TABLE", tmp_path)
    if count is not None:
        (tmp_path / "nf_conntrack_count").write_text(count)
    with pytest.raises(UsageError, match=reason):
        check(SCENARIOS["conntrack-full"], 20, consent=True, places=node)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "does not report blocked tasks"),
        ({"hung_task_timeout_secs": "120", "hung_task_panic": "1"}, "panics on a blocked task"),
    ],
)
def test_a_kernel_that_would_panic_or_be_silent_is_left_alone(
    node: Places,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    reason: str,
) -> None:
    monkeypatch.setattr(storage_scenarios, "_require", lambda *programs: None)
    monkeypatch.setattr(storage_scenarios, "_HUNG", tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(f"{text}\n")
    with pytest.raises(UsageError, match=reason):
        check(SCENARIOS["blocked-writers"], 20, consent=True, places=node)
