"""Steps on files of the kernel, on a tree of them: written, written back, refused."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.remedy.killed import KillAt, run_killed
from tests.remedy.plans import apply_plan, make_plan, make_step, undo_plan

from nodescope.errors import NodescopeError, RemedyError
from nodescope.records.action import Target
from nodescope.remedy.actions.catalogue import find_operation
from nodescope.remedy.actions.operation import Captured
from nodescope.remedy.apply import Consents
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.sources.places import Places

_ALLOWS = Consents(owners=frozenset({"owner"}))


@pytest.fixture
def node(tmp_path: Path) -> NodeAccess:
    for path, content in {
        "proc/sys/vm/swappiness": "60\n",
        "proc/sys/vm/drop_caches": "0\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "proc/irq/23/smp_affinity_list": "0-3\n",
        "sys/kernel/mm/transparent_hugepage/defrag": "defer\n",
        "sys/fs/cgroup/a/memory.reclaim": "",
        "sys/fs/cgroup/a/memory.current": "4096\n",
        "sys/fs/cgroup/a/cgroup.freeze": "1\n",
        "sys/fs/cgroup/cgroup.controllers": "memory\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    (tmp_path / "proc/self").mkdir()
    mount = f"cgroup2 {tmp_path}/sys/fs/cgroup cgroup2 rw 0 0\n"
    (tmp_path / "proc/self/mounts").write_text(mount)
    return NodeAccess(Places(tmp_path))


def _value(name: str, value: str) -> PlanStep:
    return make_step("set_kernel_value", name, {"value": value}, target="kernel_value")


def _moved(cores: str, irq: str = "23") -> PlanStep:
    return make_step(
        "move_interrupt", "eth0", {"irq": irq, "cores": cores}, target="network_device"
    )


_WRITTEN = {
    "vm.swappiness": (_value("vm.swappiness", "10"), "proc/sys/vm/swappiness", "10"),
    "a list": (
        _value("net.ipv4.tcp_rmem", "4096 131072 999"),
        "proc/sys/net/ipv4/tcp_rmem",
        "4096 131072 999",
    ),
    "of /sys": (
        _value("/sys/kernel/mm/transparent_hugepage/defrag", "never"),
        "sys/kernel/mm/transparent_hugepage/defrag",
        "never",
    ),
    "interrupt": (_moved("2"), "proc/irq/23/smp_affinity_list", "2"),
}


@pytest.mark.parametrize("case", _WRITTEN.values(), ids=_WRITTEN)
def test_a_value_is_written_and_written_back(
    node: NodeAccess, case: tuple[PlanStep, str, str]
) -> None:
    step, file, value = case
    path = node.places.root / file
    plan, was = make_plan(step), path.read_text().strip()
    apply_plan(plan, node)
    assert path.read_text() == value
    assert apply_plan(plan, node) == []
    assert not undo_plan(plan, node).left_alone
    assert path.read_text() == was


@pytest.mark.parametrize("at", range(4))
def test_a_run_killed_at_a_write_is_resumed_and_undone(node: NodeAccess, at: int) -> None:
    path = node.places.root / "proc/sys/vm/swappiness"
    plan = make_plan(_value("vm.swappiness", "10"))
    assert run_killed(partial(apply_plan, plan, node, around=KillAt(at)))
    apply_plan(plan, node)
    assert path.read_text().strip() == "10"
    assert run_killed(partial(undo_plan, plan, node, around=KillAt(at)))
    undo_plan(plan, node)
    assert path.read_text().strip() == "60"


def test_a_value_that_somebody_else_wrote_stays(node: NodeAccess) -> None:
    path = node.places.root / "proc/sys/vm/swappiness"
    plan = make_plan(_value("vm.swappiness", "10"))
    apply_plan(plan, node)
    path.write_text("33\n")
    assert "somebody wrote 33 since" in undo_plan(plan, node).left_alone[0]
    assert path.read_text() == "33\n"


@pytest.mark.parametrize(
    "step",
    [
        _value("vm/../../../etc/passwd", "1"),
        _value("/sys/../etc/passwd", "1"),
        _value("/etc/passwd", "1"),
        _value("vm.none", "1"),
        _value("vm.swappiness", "1\n2"),
        _value("vm.swappiness", ""),
        _value("vm.swappiness", "60"),
        _value("/sys/escape", "1"),
        _moved("2", irq="../23"),
        _moved("", irq="23"),
        _moved("x", irq="23"),
        _moved("2", irq="99"),
        make_step("drop_caches", None, {"value": "4"}, target="node"),
        make_step("reclaim_cgroup", "/", {"file": "memory.reclaim", "amount": "1"}, "cgroup"),
        make_step("reclaim_cgroup", "/../a", {"file": "memory.reclaim", "amount": "1"}, "cgroup"),
        make_step("reclaim_cgroup", "/a", {"file": "memory.max", "amount": "1"}, "cgroup"),
        make_step("reclaim_cgroup", "/gone", {"file": "memory.reclaim", "amount": "1"}, "cgroup"),
        make_step("thaw", "/gone", {"what": "cgroup"}, "cgroup"),
        make_step("thaw", "/nowhere", {"what": "mount"}, "mount"),
        make_step("vacuum_journal", "/", {"folder": "/etc", "keep_bytes": "0"}, "mount"),
    ],
)
def test_what_is_not_a_value_of_the_kernel_is_refused(node: NodeAccess, step: PlanStep) -> None:
    (node.places.root / "etc").mkdir()
    (node.places.root / "etc/passwd").write_text("root")
    (node.places.root / "sys/escape").symlink_to(node.places.root / "etc/passwd")
    with pytest.raises(NodescopeError):
        apply_plan(make_plan(step), node)
    assert (node.places.root / "etc/passwd").read_text() == "root"


def test_caches_are_dropped_once(node: NodeAccess) -> None:
    step = make_step("drop_caches", None, {"value": "1"}, target="node", undo="never")
    plan = make_plan(step)
    apply_plan(plan, node)
    path = node.places.root / "proc/sys/vm/drop_caches"
    assert path.read_text()[0] == "1"
    path.write_text("0")
    assert apply_plan(plan, node) == []
    assert path.read_text() == "0"
    assert undo_plan(plan, node).kept == step.changes


def test_a_parent_is_told_to_reclaim(node: NodeAccess) -> None:
    arguments = {"file": "memory.reclaim", "amount": "4096"}
    step = make_step("reclaim_cgroup", "/a", arguments, "cgroup", undo="never")
    apply_plan(make_plan(step), node)
    assert (node.places.root / "sys/fs/cgroup/a/memory.reclaim").read_text() == "4096"


def test_a_frozen_cgroup_is_thawed_and_frozen_again(node: NodeAccess) -> None:
    path = node.places.root / "sys/fs/cgroup/a/cgroup.freeze"
    plan = make_plan(make_step("thaw", "/a", {"what": "cgroup"}, "cgroup"))
    path.write_text("1")
    apply_plan(plan, node)
    assert path.read_text() == "0"
    undo_plan(plan, node)
    assert path.read_text() == "1"


@pytest.mark.parametrize("made_anew", [True, False])
def test_undo_freezes_no_other_cgroup_of_the_name(node: NodeAccess, made_anew: bool) -> None:
    plan = make_plan(make_step("thaw", "/a", {"what": "cgroup"}, target="cgroup"))
    folder = node.places.root / "sys/fs/cgroup/a"
    (folder / "cgroup.freeze").write_text("1")
    apply_plan(plan, node)
    folder.rename(folder.with_name("old"))
    if made_anew:
        folder.mkdir()
        (folder / "cgroup.freeze").write_text("0")
    undone = undo_plan(plan, node)
    assert undone.left_alone == (
        ("/a was made anew since, and is not frozen",) if made_anew else ("/a is gone",)
    )
    if made_anew:
        assert (folder / "cgroup.freeze").read_text() == "0"


# -- files -----------------------------------------------------------------------------


@pytest.fixture
def in_memory() -> Iterator[Path]:
    if not os.path.ismount("/dev/shm"):
        pytest.skip("/dev/shm is not a file system of its own")
    folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="nodescope-test-"))
    yield folder
    shutil.rmtree(folder)


def _deletion(*paths: Path | str, consent: str = "owner") -> PlanStep:
    files = {str(path): _identity(path) for path in paths}
    folder = "/" if not str(paths[0]).startswith("/dev/shm/") else "/dev/shm"
    arguments = {"files": json.dumps(files)}
    return make_step("delete_files", folder, arguments, "mount", undo="never", consent=consent)


def _counts(after: Captured) -> tuple[object, ...]:
    return after["deleted"], after["left"], after["used"]


def _identity(path: Path | str) -> str:
    found = os.lstat(path) if os.path.lexists(path) else os.stat("/")
    return f"{found.st_dev}:{found.st_ino}"


@pytest.mark.root
def test_files_in_memory_are_deleted_and_nothing_else(in_memory: Path) -> None:
    node = NodeAccess(Places())
    odd = in_memory / "a\nb"
    for path in (odd, in_memory / "kept"):
        path.write_text("x")
    step = _deletion(odd, in_memory / "gone")
    operation = find_operation("delete_files")
    assert operation.check(step, node) is None
    assert odd.exists()
    assert _counts(operation.apply(step, node, {})) == (1, 1, 0)
    assert os.listdir(in_memory) == ["kept"]
    assert _counts(operation.apply(step, node, {})) == (0, 2, 0)


@pytest.mark.root
def test_a_file_that_was_replaced_or_is_used_is_left(in_memory: Path) -> None:
    node, operation = NodeAccess(Places()), find_operation("delete_files")
    free, replaced, opened, mapped = (in_memory / name for name in "from")
    for path in (free, replaced, opened, mapped):
        path.write_text("x" * 4096)
    step = _deletion(free, replaced, opened, mapped)
    (in_memory / "new").write_text("y")
    (in_memory / "new").rename(replaced)
    with mapped.open("r+b") as file:
        pages = mmap.mmap(file.fileno(), 4096)  # the descriptor is closed, as shm_open's is
    with pages, opened.open("ab"):
        assert operation.check(step, node) is None
        assert _counts(operation.apply(step, node, {})) == (1, 3, 2)
        assert sorted(os.listdir(in_memory)) == ["m", "o", "r"]
        assert operation.check(step, node) is None  # a run that was cut short goes on
        rest = _deletion(opened, mapped)
        assert "used by a process" in (operation.check(rest, node) or "")
    assert operation.apply(step, node, {})["deleted"] == 2
    assert replaced.read_text() == "y"


@pytest.mark.root
def test_files_elsewhere_or_of_the_system_are_refused(in_memory: Path) -> None:
    node, operation = NodeAccess(Places()), find_operation("delete_files")
    (in_memory / "x").write_text("x")
    step = _deletion(in_memory / "x")
    elsewhere = replace(step, target=Target("mount", "/dev/shm/other"))
    assert "does not lie in /dev/shm/other" in (operation.check(elsewhere, node) or "")
    by_name = replace(step, arguments={"files": json.dumps([str(in_memory / "x")])})
    assert operation.check(by_name, node)
    for path in ("/run/udev/data/b8:0", "/proc/7/root/run/systemd/units/a"):
        state = replace(step, target=Target("mount", str(Path(path).parent)),
                        arguments={"files": json.dumps({path: "1:2"})})  # fmt: skip
        assert "is state of" in (operation.check(state, node) or "")
    assert (in_memory / "x").exists()


@pytest.mark.root
def test_what_is_no_file_in_memory_is_never_deleted(in_memory: Path, tmp_path: Path) -> None:
    node = NodeAccess(Places())
    operation = find_operation("delete_files")
    (in_memory / "folder").mkdir()
    (in_memory / "link").symlink_to("/etc")
    (in_memory / "to-file").symlink_to("/etc/passwd")
    (tmp_path / "on-disk").write_text("x")
    for path in (
        in_memory / "folder",
        in_memory / "to-file",
        in_memory / "link/passwd",
        f"{in_memory}/../../../etc/passwd",
        "relative",
    ):
        assert operation.check(_deletion(path), node)
        with pytest.raises(RemedyError):
            operation.apply(_deletion(path), node, {})
    if os.stat(tmp_path).st_dev != os.stat("/dev/shm").st_dev and not _lies_in_memory(tmp_path):
        assert operation.check(_deletion(tmp_path / "on-disk"), node)
        assert (tmp_path / "on-disk").exists()
    assert operation.check(_deletion(in_memory / "x", consent=""), node)
    assert os.path.exists("/etc/passwd")


def _lies_in_memory(path: Path) -> bool:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    holding = [each for each in mounts if path.is_relative_to(each[1])]
    return max(holding, key=lambda each: len(each[1]))[2] in ("tmpfs", "ramfs")


def test_only_the_oldest_archived_journal_files_go(node: NodeAccess) -> None:
    folder = node.places.root / "var/log/journal"
    machine = folder / "0123"
    machine.mkdir(parents=True)
    for number, name in enumerate(
        ("system.journal", "system@1.journal", "system@2.journal", "user-1@3.journal~", "note@.txt")
    ):
        (machine / name).write_bytes(b"x" * 8192)
        os.utime(machine / name, (number, number))
    arguments = {"folder": str(folder), "keep_bytes": "9000"}
    step = make_step("vacuum_journal", "/", arguments, "mount", undo="never")
    apply_plan(make_plan(step), node, consents=_ALLOWS)
    left = sorted(os.listdir(machine))
    assert left == ["note@.txt", "system.journal", "user-1@3.journal~"]
