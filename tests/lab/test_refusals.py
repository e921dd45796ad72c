from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from nodescope.errors import UsageError
from nodescope.lab import decoy_scenarios
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
