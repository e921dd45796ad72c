from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nodescope.symbols import Binaries, Limits, Reason
from nodescope.symbols.elf import parse_elf
from nodescope.symbols.file_bytes import FileBytes
from nodescope.symbols.mounts import parse_is_remote

if TYPE_CHECKING:
    from tests.symbols.conftest import Built


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def binaries(clock: Clock) -> Binaries:
    return Binaries(clock=clock)


def identity(path: Path) -> tuple[tuple[int, int], int]:
    status = path.stat()
    return (os.major(status.st_dev), os.minor(status.st_dev)), status.st_ino


def entry_offset(path: Path) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    text = parse_elf(FileBytes(str(path))).section(".text")
    assert text is not None
    return np.array([text.offset], np.uint64)


@contextmanager
def running(path: Path) -> Iterator[int]:
    with subprocess.Popen([path, "wait"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "it ended"
        yield process.pid
        process.kill()


@pytest.fixture
def copy(built: Built, tmp_path: Path) -> Path:
    path = tmp_path / "program"
    shutil.copy(built.pie, path)
    return path


def test_a_process_names_its_code(binaries: Binaries, copy: Path) -> None:
    with running(copy) as pid:
        binary = binaries.open(pid, str(copy), *identity(copy))
        assert binary.module == str(copy)
        assert binary.resolve(entry_offset(copy)) == ["_start"]
    assert not binaries.failures
    assert not binaries.unresolved


def test_a_known_file_outlives_its_process(binaries: Binaries, copy: Path, clock: Clock) -> None:
    device, inode = identity(copy)
    binary = binaries.open(os.getpid(), str(copy), device, inode)
    clock.now += 3600
    copy.unlink()
    assert binaries.open(1 << 22, str(copy), device, inode) is binary


def test_a_replaced_file_is_never_used(
    binaries: Binaries, copy: Path, built: Built, clock: Clock
) -> None:
    device, inode = identity(copy)
    replacement = copy.with_name("new")
    shutil.copy(built.fixed, replacement)
    replacement.rename(copy)
    binary = binaries.open(os.getpid(), str(copy), device, inode)
    assert binary.reason is Reason.REPLACED
    assert binary.resolve(np.array([0x1040], np.uint64)) == ["+0x1040"]
    assert binaries.failures == {Reason.REPLACED: 1}
    assert binaries.unresolved == {Reason.REPLACED: 1}


def test_the_same_build_id_in_another_inode_is_the_same_code(
    binaries: Binaries, copy: Path, built: Built
) -> None:
    build_id = parse_elf(FileBytes(str(copy))).build_id
    binary = binaries.open(os.getpid(), str(copy), (259, 7), 42, build_id)
    assert binary.resolve(entry_offset(copy)) == ["_start"]
    wrong = binaries.open(os.getpid(), str(copy), *identity(copy), b"\1" * 20)
    assert wrong.reason is Reason.REPLACED


def test_containers_with_the_same_build_id_share_one_image(
    binaries: Binaries, copy: Path, built: Built
) -> None:
    build_id = parse_elf(FileBytes(str(copy))).build_id
    first = binaries.open(os.getpid(), str(copy), None, None, build_id)
    second = binaries.open(1 << 22, "/elsewhere/program", None, None, build_id)
    assert second.image is first.image
    assert second.module == "/elsewhere/program"


def test_overlay_devices_may_differ_when_the_inode_agrees(binaries: Binaries, copy: Path) -> None:
    _, inode = identity(copy)
    assert binaries.open(os.getpid(), str(copy), (0, 99), inode).reason is None
    assert binaries.open(os.getpid(), str(copy), (7, 99), inode).reason is Reason.REPLACED


def test_a_deleted_program_is_found_through_its_process(binaries: Binaries, copy: Path) -> None:
    device, inode = identity(copy)
    offset = entry_offset(copy)
    with running(copy) as pid:
        copy.unlink()
        binary = binaries.open(pid, f"{copy} (deleted)", device, inode)
        assert binary.module == f"{copy} (deleted)"
        assert binary.resolve(offset) == ["_start"]


@pytest.mark.root
def test_a_deleted_library_is_found_among_map_files(
    binaries: Binaries, built: Built, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: /proc/PID/map_files")
    source = tmp_path / "lib.c"
    source.write_text("int from_library(int a) { return a + 1; }")
    library = tmp_path / "lib.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    offset = np.array([nm_offset(library, "from_library")], np.uint64)
    device, inode = identity(library)
    preload = {**os.environ, "LD_PRELOAD": str(library)}
    with subprocess.Popen([built.pie, "wait"], stdout=subprocess.PIPE, env=preload) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "it ended"
        library.unlink()
        binary = binaries.open(process.pid, f"{library} (deleted)", device, inode)
        process.kill()
    assert binary.resolve(offset) == ["from_library"]


def nm_offset(path: Path, name: str) -> int:
    text = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    address = next(int(row.split()[0], 16) for row in text.splitlines() if row.endswith(name))
    offset = parse_elf(FileBytes(str(path))).file_offset(address)
    assert offset is not None
    return offset


def test_a_deleted_file_nobody_holds_is_counted(binaries: Binaries, copy: Path) -> None:
    device, inode = identity(copy)
    copy.unlink()
    binary = binaries.open(os.getpid(), f"{copy} (deleted)", device, inode)
    assert binary.reason is Reason.DELETED


@pytest.mark.parametrize(
    "path", ["", "//anon", "[heap]", "[stack]", "[anon:v8]", "anon_inode:[perf_event]",
             "/dev/zero (deleted)", "/SYSV00000000 (deleted)", "/dev/nvidia0"],
)  # fmt: skip
def test_code_without_a_file_bears_the_name_of_its_mapping(binaries: Binaries, path: str) -> None:
    binary = binaries.open(os.getpid(), path, (0, 0), 0)
    assert binary.module == (path or "[anon]")
    assert binary.resolve(np.array([1, 2], np.uint64)) == [binary.module] * 2
    assert not binaries.failures


def test_the_vdso_has_names(binaries: Binaries) -> None:
    names = binaries.open(os.getpid(), "[vdso]").resolve(np.arange(0, 8192, 16, dtype=np.uint64))
    assert {"__vdso_clock_gettime", "__vdso_gettimeofday"} & set(names)


def test_a_failure_is_remembered_for_a_while(
    binaries: Binaries, copy: Path, clock: Clock, built: Built
) -> None:
    copy.write_text("not a binary")
    device, inode = identity(copy)
    for _ in range(1000):
        assert binaries.open(os.getpid(), str(copy), device, inode).reason is Reason.NOT_ELF
    assert binaries.failures == {Reason.NOT_ELF: 1}
    copy.write_bytes(built.pie.read_bytes())
    clock.now += 31
    assert binaries.open(os.getpid(), str(copy), device, inode).reason is None


def test_a_dead_process_does_not_spoil_the_file_for_others(binaries: Binaries, copy: Path) -> None:
    device, inode = identity(copy)
    inside = str(copy.relative_to("/"))
    gone = binaries.open(1 << 22, f"/no/such/root/{inside}", device, inode)
    assert gone.reason is Reason.PROCESS_GONE
    other = binaries.open(os.getpid(), f"/no/such/root/{inside}", device, inode)
    assert other.reason is Reason.ABSENT


def test_a_file_changed_in_place_is_read_again(
    binaries: Binaries, copy: Path, built: Built, clock: Clock
) -> None:
    device, inode = identity(copy)
    first = binaries.open(os.getpid(), str(copy), device, inode)
    copy.write_bytes(built.static.read_bytes())
    clock.now += 6
    second = binaries.open(os.getpid(), str(copy), device, inode)
    assert second.image is not first.image
    assert second.resolve(entry_offset(built.static)) != []


def test_descriptors_and_bytes_stay_within_limits(
    built: Built, tmp_path: Path, clock: Clock
) -> None:
    binaries = Binaries(limits=Limits(descriptors=4, table_bytes=200_000), clock=clock)
    opened = []
    for number in range(20):
        path = tmp_path / f"copy{number}"
        shutil.copy(built.static, path)
        clock.now += 1
        binary = binaries.open(os.getpid(), str(path), *identity(path))
        assert binary.resolve(entry_offset(path))[0]
        opened.append((path, binary))
        assert binaries.descriptors <= 4
        assert binaries.nbytes <= 200_000
    path, binary = opened[0]
    assert binary.resolve(np.array([0x401000], np.uint64)) == ["+0x401000"]
    assert binaries.unresolved[Reason.EVICTED] == 1
    again = binaries.open(os.getpid(), str(path), *identity(path))
    assert again.resolve(entry_offset(path)) == ["_start"] or again.image is not None
    held = len(os.listdir("/proc/self/fd"))
    binaries.close()
    assert len(os.listdir("/proc/self/fd")) < held


def test_the_number_of_mappings_is_bounded(copy: Path, clock: Clock) -> None:
    binaries = Binaries(limits=Limits(mappings=100), clock=clock)
    for pid in range(1000):
        binaries.open(pid + (1 << 22), "/nowhere")
    assert len(binaries._mappings) <= 100


MOUNTS = rb"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
80 22 0:50 / /mnt/a\040b rw - fuse.sshfs host: rw
81 22 0:51 / /home rw shared:1 - nfs4 server:/home rw
82 22 0:52 / /sys/fs/fuse/connections rw - fusectl none rw
garbage
"""


def test_remote_file_systems_are_recognised() -> None:
    assert not parse_is_remote(MOUNTS, "/usr/bin/python3")
    assert parse_is_remote(MOUNTS, "/home/me/bin/tool")
    assert parse_is_remote(MOUNTS, "/mnt/a b/tool")
    assert not parse_is_remote(MOUNTS, "/homely/tool")


def test_paths_that_cannot_exist_are_only_reasons(binaries: Binaries) -> None:
    for path in ("/a\0b", "relative/path", "/" + "x" * 5000, "/proc/self/root/../..", "/\udcff"):
        assert binaries.open(os.getpid(), path, (8, 1), 5).reason is not None


def test_idle_files_are_let_go_and_found_again(
    binaries: Binaries, copy: Path, clock: Clock
) -> None:
    device, inode = identity(copy)
    first = binaries.open(os.getpid(), str(copy), device, inode)
    clock.now += 59
    assert binaries.close_idle() == 0
    clock.now += 2
    assert binaries.close_idle() == 1
    assert binaries.descriptors == 0
    assert first.resolve(np.array([7], np.uint64)) == ["+0x7"]
    again = binaries.open(os.getpid(), str(copy), device, inode)
    assert again.resolve(entry_offset(copy)) == ["_start"]


@pytest.mark.root
def test_a_process_in_another_root_is_read_through_its_own(
    binaries: Binaries, built: Built, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: chroot")
    program = tmp_path / "inside"
    shutil.copy(built.static, program)
    with subprocess.Popen(
        ["/inside", "wait"], stdout=subprocess.PIPE, preexec_fn=lambda: os.chroot(tmp_path)
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "it ended"
        binary = binaries.open(process.pid, "/inside", *identity(program))
        process.kill()
    assert binary.module == "/inside"
    assert binary.resolve(np.array([nm_offset(program, " main")], np.uint64)) == ["main"]


def test_debug_files_count_as_descriptors(built: Built, tmp_path: Path, clock: Clock) -> None:
    binaries = Binaries(limits=Limits(descriptors=4), clock=clock)
    for number in range(6):
        path = tmp_path / f"copy{number}"
        debug = tmp_path / f"copy{number}.debug"
        shutil.copy(built.stripped, path)
        subprocess.run(["objcopy", "--only-keep-debug", built.pie, debug], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", path], check=True)
        clock.now += 1
        binary = binaries.open(os.getpid(), str(path), *identity(path))
        assert binary.resolve(entry_offset(path)) == ["_start"]
        assert binaries.descriptors <= 4
