from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.errors import SourceAbsent, SourceError
from nodescope.perf.proc_pid import parse_executable_maps, read_comm, read_executable_maps

MAPS = b"""55d0a0000000-55d0a0002000 r--p 00000000 fe:00 111                        /usr/bin/app
55d0a0002000-55d0a0008000 r-xp 00002000 fe:00 111                        /usr/bin/app
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7f0000002000-7f0000003000 r-xp 00001000 fe:00 222                        /opt/my lib/x.so (deleted)
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""


def test_only_executable_mappings_with_paths_as_written() -> None:
    mappings = parse_executable_maps(MAPS)
    assert [one.path for one in mappings] == [
        "/usr/bin/app", "", "/opt/my lib/x.so (deleted)", "[vdso]", "[vsyscall]",
    ]  # fmt: skip
    assert mappings[0].offset == 0x2000
    assert mappings[0].device == (0xFE, 0)
    assert mappings[0].inode == 111


def test_our_own_maps_name_libc() -> None:
    mappings = read_executable_maps(Path("/proc"), os.getpid())
    assert any("libc" in one.path for one in mappings)
    assert mappings == sorted(mappings, key=lambda one: one.start)


def test_a_vanished_process_is_absent(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        read_comm(tmp_path, 1)
    with pytest.raises(SourceAbsent):
        read_executable_maps(tmp_path, 1)


def test_comm_may_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "comm").write_bytes(b"a b\xff)(\n")
    assert read_comm(tmp_path, 5) == "a b\ufffd)("


@given(st.binary(max_size=200))
def test_nothing_but_our_own_errors(content: bytes) -> None:
    try:
        parse_executable_maps(content + b" r-xp \n" + content)
    except SourceError:
        pass
