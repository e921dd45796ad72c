"""Files that processes have open for writing, of this machine's own kernel."""

from __future__ import annotations

import os
from pathlib import Path

from nodescope.quantities import SECOND_NS
from nodescope.sources.node.mount_table import parse_mountinfo
from nodescope.sources.processes.written_files import parse_mount_number, read_written_files

PROC = Path("/proc")


def device_of(path: Path) -> str:
    """Return the file system of a path as the mount table has it: the innermost mount."""
    mounts = parse_mountinfo(Path("/proc/self/mountinfo").read_bytes())
    above = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(above, key=lambda mount: (len(mount.point), mount.number)).device


def test_a_file_that_is_written_has_its_process_and_its_size(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with open(path, "wb") as file, open(tmp_path / "read", "w+"), open(tmp_path / "read") as other:
        file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
        found = read_written_files(PROC, device_of(tmp_path), 60 * SECOND_NS)
        mine = [each for each in found.files if each.pid == os.getpid()]
    assert other.closed
    (log,) = [each for each in mine if each.path == str(path)]
    assert (log.inode, log.deleted) == (path.stat().st_ino, False)
    assert log.size_bytes >= 1 << 20
    assert log.comm == Path("/proc/self/comm").read_text().strip()


def test_a_deleted_file_still_takes_space(tmp_path: Path) -> None:
    path = tmp_path / "gone"
    with open(path, "wb") as file:
        file.write(bytes(1 << 16))
        file.flush()
        path.unlink()
        found = read_written_files(PROC, device_of(tmp_path), 60 * SECOND_NS)
        (gone,) = [each for each in found.files if each.path == str(path)]
    assert gone.deleted


def test_files_of_other_file_systems_are_not_named(tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb"):
        assert not read_written_files(PROC, "4095:1", 60 * SECOND_NS).files


def test_a_look_that_costs_too_much_ends_and_says_so() -> None:
    times = iter(range(0, 10**12, SECOND_NS))
    found = read_written_files(PROC, "4095:1", SECOND_NS, lambda: next(times))
    assert not found.complete


def test_the_number_of_a_mount() -> None:
    assert parse_mount_number(b"pos:\t0\nflags:\t0100001\nmnt_id:\t27\nino:\t5\n") == 27
    assert parse_mount_number(b"pos:\t0\nflags:\t0100001\n") is None
