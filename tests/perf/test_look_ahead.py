from __future__ import annotations

from tests.perf import perf_records as make

from nodescope.perf.decode import split
from nodescope.perf.look_ahead import MappedCode, MappedFile, find_mapped


def test_new_files_are_met_once() -> None:
    met: set[int] = set()
    chunk = split(
        0,
        make.mmap2(5, 1, 0x400000, 0x1000, "/bin/a", inode=3)
        + make.mmap2(6, 2, 0x400000, 0x1000, "/bin/a", inode=3)
        + make.mmap2(6, 3, 0x500000, 0x1000, "//anon", inode=0, device=(0, 0)),
    )
    # The latest process to map it is the likeliest to live still.
    assert find_mapped([chunk], met).files == [MappedFile(6, "/bin/a", (8, 1), 3)]
    assert find_mapped([chunk], met).files == []


def test_processes_that_map_code_of_no_file() -> None:
    def anonymous(pid: int, time: int, name: str = "//anon") -> bytes:
        return make.mmap2(pid, time, 0x500000, 0x1000, name, inode=0, device=(0, 0))

    chunks = [
        split(0, make.fork(6, 5, 1) + make.fork(6, 6, 2, tid=7) + make.fork(9, 5, 2)),
        split(1, anonymous(6, 30) + anonymous(6, 10) + anonymous(7, 20, "[heap]")),
        split(2, anonymous(8, 40, "[vdso]")),  # every process has that
    ]
    assert find_mapped(chunks, set()).code == [
        MappedCode(7, 20, parent=None),
        MappedCode(6, 10, parent=5),
    ]


def test_nothing_at_all() -> None:
    found = find_mapped([], set())
    assert (found.files, found.code) == ([], [])
