from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.sources.memory_cgroups.trees import put

from nodescope.errors import SourceDenied
from nodescope.sources.memory_cgroups.pages import KINDS, classify, parse_ram, scan_pages
from nodescope.sources.memory_cgroups.resident_pages import find_runs
from nodescope.sources.places import Places


def test_ranges_of_memory() -> None:
    iomem = (
        b"00000000-00000fff : Reserved\n"
        b"00001000-0009fbff : System RAM\n"
        b"00100000-bfffffff : System RAM\n"
        b"  01000000-01ffffff : Kernel code\n"
        b"100000000-63fffffff : System RAM\n"
    )
    assert parse_ram(iomem) == [(1, 0x9F), (0x100, 0xC0000), (0x100000, 0x640000)]


def test_hidden_addresses_are_told_as_denied(tmp_path: Path) -> None:
    put(tmp_path / "proc/iomem", "00000000-00000000 : System RAM\n")
    with pytest.raises(SourceDenied, match="no addresses"):
        scan_pages(Places(tmp_path))


def test_kinds_of_pages() -> None:
    lru, slab, anon, swap_backed, table = 1 << 5, 1 << 7, 1 << 12, 1 << 14, 1 << 26
    flags = np.array([0, lru, lru | swap_backed, lru | anon | swap_backed, slab, table], np.uint64)
    names = [KINDS[kind] for kind in classify(flags)]
    assert names == ["other", "file", "shmem", "anon", "slab", "page_tables"]


def test_a_scan_adds_up_by_owner_and_kind(tmp_path: Path) -> None:
    put(tmp_path / "proc/iomem", "00001000-00004fff : System RAM\n")
    owners = np.array([9, 0, 77, 77, 88], np.uint64)
    flags = np.array([0, 0, 1 << 5, 1 << 14, 1 << 5], np.uint64)
    (tmp_path / "proc/kpagecgroup").write_bytes(owners.tobytes())
    (tmp_path / "proc/kpageflags").write_bytes(flags.tobytes())
    scan = scan_pages(Places(tmp_path))
    assert scan.bytes_of == {77: {"file": 4096, "shmem": 4096}, 88: {"file": 4096}}
    assert scan.pages == 4


def test_runs_of_cached_pages() -> None:
    assert list(find_runs(b"\1\1\0\0\3\0\1")) == [(0, 2), (4, 1), (6, 1)]
    assert list(find_runs(b"\0\2\0")) == []
    assert list(find_runs(b"")) == []
