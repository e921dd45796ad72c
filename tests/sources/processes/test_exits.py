from __future__ import annotations

import struct
import subprocess

import pytest
from tests.waiting import wait_for

from nodescope.errors import SourceAbsent, SourceError
from nodescope.sources.processes.exits import (
    TaskExit,
    TaskExits,
    _without_threads,
    parse_task_exits,
)


def _datagram(status: int, version: int = 0, flags: int = 0) -> bytes:
    stats = bytearray(416 if version >= 12 else 328)
    struct.pack_into("=H", stats, 0, version)
    stats[8] = flags
    struct.pack_into("=I", stats, 4, status)
    stats[80:85] = b"agent"
    struct.pack_into("=II", stats, 128, 4711, 4700)
    struct.pack_into("=Q", stats, 144, 2_500_000)
    pid = struct.pack("=HHI", 8, 1, 4711)
    inner = pid + struct.pack("=HH", 4 + len(stats), 3) + stats
    outer = struct.pack("=HH", 4 + len(inner), 4) + inner
    body = struct.pack("=BBH", 2, 1, 0) + outer
    return struct.pack("=IHHII", 16 + len(body), 31, 0, 0, 0) + body


def test_an_end_is_read() -> None:
    (end,) = parse_task_exits(_datagram(3 << 8))
    assert end == TaskExit(4711, 4700, "agent", 768, 2_500_000, whole=False)
    assert (end.exit_code, end.signal) == (3, 0)
    (killed,) = parse_task_exits(_datagram(9))
    assert (killed.exit_code, killed.signal) == (0, 9)


def test_a_process_is_told_of_by_its_last_thread() -> None:
    assert parse_task_exits(_datagram(768, version=13)) == []
    assert len(parse_task_exits(_datagram(768, version=13, flags=0x20))) == 1


def test_what_threads_tell_before_they_could_say_so_is_one_end() -> None:
    ends = [TaskExit(pid, 7, "go", 256, 10, whole=False) for pid in range(12)]
    other = TaskExit(99, 7, "go", 512, 10, whole=False)
    assert _without_threads([*ends, other]) == [ends[0], other]
    whole = [TaskExit(pid, 7, "go", 256, 10) for pid in range(3)]
    assert _without_threads(whole) == whole


def test_the_version_that_moved_its_fields_is_refused() -> None:
    with pytest.raises(SourceAbsent, match="version 15"):
        parse_task_exits(_datagram(768, version=15, flags=0x20))


def test_a_fork_that_ran_no_program_is_told_from_one_that_did() -> None:
    (forked,) = parse_task_exits(_datagram(768, version=13, flags=0x21))
    (ran,) = parse_task_exits(_datagram(768, version=13, flags=0x20))
    assert (forked.execed, ran.execed) == (False, True)


def test_what_is_cut_off_says_nothing() -> None:
    whole = _datagram(256)
    for end in range(len(whole)):
        assert parse_task_exits(whole[:end]) == []


@pytest.mark.root
@pytest.mark.live
def test_a_child_that_fails_is_heard_of() -> None:
    try:
        exits = TaskExits()
    except SourceError as error:
        pytest.skip(f"needs taskstats: {error}")
    child = subprocess.Popen(["sh", "-c", "exit 7"])
    heard: list[TaskExit] = []

    def look() -> bool:
        child.poll()
        heard.extend(exits.take())
        return any(each.pid == child.pid for each in heard)

    try:
        wait_for(look, "the kernel told of the child's end")
    finally:
        child.wait()
        exits.close()
    (end,) = [each for each in heard if each.pid == child.pid]
    assert (end.exit_code, end.comm, end.execed) == (7, "sh", True)
