from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.waiting import wait_for

from nodescope.errors import NodescopeError, UsageError
from nodescope.lab import ground as ground_module
from nodescope.lab.catalogue import SCENARIOS, find_scenario
from nodescope.lab.cgroups import require
from nodescope.lab.ground import LEDGERS, Ground, GroundLedger, clean, read_start_time
from nodescope.lab.storage_scenarios import find_device

MAKES_AND_WAITS = """
import time
from nodescope.lab.ground import Ground
ground = Ground()
ground.folder("pins", tmpfs="4m")
ground.cgroup("inner")
ground.start(["sleep", "1000"])
print(ground.name, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def memory_cgroups() -> None:
    """Cgroups can be made here, or the test is skipped with the reason."""
    try:
        require("memory")
    except NodescopeError as error:
        pytest.skip(str(error))


@pytest.mark.root
@pytest.mark.live
@pytest.mark.usefixtures("memory_cgroups")
def test_leaving_takes_everything_down(tmp_path: Path) -> None:
    setting = tmp_path / "setting"
    setting.write_text("5\n")
    with Ground() as ground:
        folder = ground.folder("pins", tmpfs="4m")
        assert os.path.ismount(folder)
        cgroup = ground.cgroup("inner")
        process = ground.start(["sleep", "1000"])
        (cgroup / "cgroup.procs").write_text(str(process.pid))
        ground.write(setting, "7")
        assert setting.read_text() == "7"
    assert not folder.exists()
    assert not cgroup.exists()
    assert not cgroup.parent.exists()
    assert read_start_time(process.pid) is None
    assert setting.read_text() == "5"
    assert not list(LEDGERS.glob(f"{ground.name}*"))


def test_a_setting_is_of_one_run_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ground_module, "LEDGERS", tmp_path)
    taken, free = tmp_path / "taken", tmp_path / "free"
    other = GroundLedger(owner=1, owner_started=1, restore=[(str(taken), "5")])
    (tmp_path / "other.json").write_text(json.dumps(asdict(other)))
    taken.write_text("7\n")
    free.write_text("5\n")
    with Ground() as ground:
        ground.write(free, "8")
        ground.write(free, "9")  # its own
        with pytest.raises(UsageError, match="is set by another run of the lab, of process 1"):
            ground.write(taken, "9")
        assert free.read_text() == "9"
    assert free.read_text() == "5"
    assert taken.read_text() == "7\n"


@pytest.mark.root
@pytest.mark.live
def test_a_frozen_file_system_and_its_loop_devices_go_with_its_writers() -> None:
    if shutil.which("mkfs.ext4") is None or not Path("/dev/loop-control").exists():
        pytest.skip("no ext4 on loop devices here")
    with Ground() as ground:
        outer = ground.image("outer", "64M", on=ground.folder("images", on_disk=True))
        inner = ground.image("inner", "16M", on=outer)
        devices = [find_device(outer), find_device(inner)]
        (outer / "before").write_text("x")
        ground.freeze(outer)
        writer = ground.start(["dd", "if=/dev/zero", f"of={outer}/data", "count=1"])
        state = Path(f"/proc/{writer.pid}/stat")
        wait_for(lambda: ") D " in state.read_text(), "the writer is blocked", process=writer)
    assert writer.returncode is not None
    assert not outer.exists()
    assert not inner.exists()
    wait_for(
        lambda: not any(Path(f"/sys/block/{each}/loop").exists() for each in devices),
        "the loop devices are free",
    )


def test_a_thawed_file_system_is_not_thawed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_module, "LEDGERS", tmp_path)
    asked: list[str] = []
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: asked.append(f"{command[1]} {command[2]}")
    )
    with Ground() as ground:
        ground.freeze(Path("/a"))
        ground.freeze(Path("/b"))
        ground.thaw(Path("/a"))
        assert asked == ["--freeze /a", "--freeze /b", "--unfreeze /a"]
    assert asked[3:] == ["--unfreeze /b"]


@pytest.mark.root
@pytest.mark.live
@pytest.mark.usefixtures("memory_cgroups")
def test_what_a_killed_run_left_is_found_and_taken_down() -> None:
    run = subprocess.Popen([sys.executable, "-c", MAKES_AND_WAITS], stdout=subprocess.PIPE)
    assert run.stdout is not None
    name = run.stdout.readline().decode().strip()
    folder = LEDGERS / f"{name}-pins"
    assert folder.exists()
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    found = wait_for(clean, "the leftovers are found")
    assert any(str(run.pid) in each for each in found)
    assert not folder.exists()
    assert not list(Path("/sys/fs/cgroup").glob(f"*/{name}*"))
    assert clean() == []


@pytest.mark.root
def test_a_run_that_still_runs_is_left_alone() -> None:
    with Ground() as ground:
        folder = ground.folder("mine")
        clean()
        assert folder.exists()


def test_a_ledger_that_is_no_ledger_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_module, "LEDGERS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(ground_module, "_strays", lambda: iter(()))
    (tmp_path / "a.json").write_text("{nonsense")
    (tmp_path / "b.json").write_text('{"owner": 1}')
    clean()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    monkeypatch.setattr(ground_module, "_strays", lambda: iter(()))


@pytest.mark.usefixtures("nobody")
def test_without_root_what_is_left_cannot_be_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_module, "LEDGERS", tmp_path)  # there were runs
    with pytest.raises(UsageError, match="only root may see") as refused:
        clean()
    assert "sudo nodescope lab clean" in (refused.value.hint or "")


@pytest.mark.usefixtures("nobody")
def test_without_root_a_cgroup_that_is_left_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_module, "LEDGERS", tmp_path / "none")
    monkeypatch.setattr(ground_module, "_strays", lambda: iter([tmp_path / "nodescope-lab-1"]))
    with pytest.raises(UsageError, match="only root may see"):
        clean()


@pytest.mark.usefixtures("nobody")
def test_where_no_run_has_been_anybody_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground_module, "LEDGERS", tmp_path / "none")
    assert clean() == []


def test_a_scenario_is_known_by_name() -> None:
    assert find_scenario("zombies").name == "zombies"
    with pytest.raises(UsageError, match="no scenario 'nonsense'"):
        find_scenario("nonsense")
    assert sum(each.decoy for each in SCENARIOS.values()) == 9
