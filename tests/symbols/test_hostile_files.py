"""Files that lie, shrink, vanish or never end: reasons, no exceptions, little memory."""

from __future__ import annotations

import os
import shutil
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodescope.symbols import Binaries, Reason
from nodescope.symbols.elf import parse_elf
from nodescope.symbols.file_bytes import FileBytes, MemoryBytes
from nodescope.symbols.image import Image
from nodescope.symbols.unresolved import Unresolvable

if TYPE_CHECKING:
    from tests.symbols.conftest import Built

OFFSETS = np.array([0, 1, 0x1000, 0x1139, 0x1150, 0x2000, 1 << 33, (1 << 64) - 1], np.uint64)
MANY = settings(max_examples=300, deadline=None,
                suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip


def name_all(data: bytes) -> list[str] | Reason:
    """Names of `OFFSETS`, or the one reason there are none."""
    try:
        image = Image(parse_elf(MemoryBytes(data, "hostile")), "/hostile", ())
    except Unresolvable as error:
        return error.why
    names = image.resolve(OFFSETS, Counter())
    assert len(names) == len(OFFSETS)
    assert all(names)
    return names


@MANY
@given(st.binary(max_size=4096))
def test_random_bytes(data: bytes) -> None:
    assert name_all(data) in (Reason.NOT_ELF, Reason.TRUNCATED)


@MANY
@given(st.binary(max_size=2048))
def test_random_bytes_behind_an_elf_magic(data: bytes) -> None:
    name_all(b"\x7fELF\x02\x01\x01" + bytes(9) + data)


@MANY
@given(data=st.data())
def test_bit_flips_in_headers(built: Built, data: st.DataObject) -> None:
    image = bytearray(built.pie.read_bytes())
    sections = int.from_bytes(image[0x28:0x30], "little")
    places = st.one_of(
        st.integers(0, 0x3FF),
        st.integers(sections, len(image) - 1),
        st.integers(0, len(image) - 1),
    )
    for place in data.draw(st.lists(places, min_size=1, max_size=8)):
        image[place] ^= 1 << data.draw(st.integers(0, 7))
    name_all(bytes(image))


@MANY
@given(data=st.data())
def test_absurd_numbers_in_headers(built: Built, data: st.DataObject) -> None:
    image = bytearray(built.pie.read_bytes())
    sections = int.from_bytes(image[0x28:0x30], "little")
    words = st.sampled_from([0, 1, 0xFF, 0xFFFF, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 64) - 1])
    for _ in range(data.draw(st.integers(1, 4))):
        base = data.draw(st.sampled_from([0, 0x40, sections]))
        place = base + 8 * data.draw(st.integers(0, 60))
        image[place : place + 8] = data.draw(words).to_bytes(8, "little")
    started = time.monotonic()
    tracemalloc.start()
    name_all(bytes(image))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    assert time.monotonic() - started < 5


def test_truncated_at_every_interesting_offset(built: Built) -> None:
    whole = built.pie.read_bytes()
    elf = parse_elf(MemoryBytes(whole, "whole"))
    edges = {s.offset for s in elf.sections} | {s.offset + s.size for s in elf.sections}
    edges |= {s.offset for s in elf.segments} | {s.offset + s.file_size for s in elf.segments}
    edges |= set(range(0, 0x400, 7))
    for edge in sorted(edges):
        for length in (edge - 1, edge, edge + 1):
            name_all(whole[: max(length, 0)])


@pytest.fixture
def binaries() -> Binaries:
    return Binaries()


def open_own(binaries: Binaries, path: Path) -> list[str]:
    return binaries.open(os.getpid(), str(path)).resolve(np.array([0x1000], np.uint64))


def test_fifo_directory_and_devices_are_refused_at_once(binaries: Binaries, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    started = time.monotonic()
    assert open_own(binaries, fifo) == ["+0x1000"]
    assert open_own(binaries, tmp_path) == ["+0x1000"]
    assert binaries.failures[Reason.NOT_REGULAR] == 2
    for path in ("/dev/zero", "/proc/self/mem"):
        with pytest.raises(Unresolvable):
            parse_elf(FileBytes(path))
    assert time.monotonic() - started < 2


def test_a_sparse_file_of_ten_terabytes_costs_nothing(
    binaries: Binaries, tmp_path: Path, built: Built
) -> None:
    sparse = tmp_path / "sparse"
    shutil.copy(built.pie, sparse)
    try:
        os.truncate(sparse, 10 << 40)
    except OSError as error:
        pytest.skip(f"this file system has no sparse files of that size: {error}")
    started = time.monotonic()
    names = open_own(binaries, sparse)
    assert not names[0].startswith("+0x2")
    assert time.monotonic() - started < 2
    empty = tmp_path / "empty"
    empty.touch()
    os.truncate(empty, 10 << 40)
    assert open_own(binaries, empty) == ["+0x1000"]
    assert binaries.failures == {Reason.NOT_ELF: 1}


def test_a_denied_file_is_counted(tmp_path: Path, built: Built) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / "denied"
    shutil.copy(built.pie, path)
    path.chmod(0)
    binaries = Binaries()
    open_own(binaries, path)
    assert binaries.failures == {Reason.DENIED: 1}


def test_removed_between_open_and_resolve(binaries: Binaries, tmp_path: Path, built: Built) -> None:
    path = tmp_path / "gone"
    shutil.copy(built.pie, path)
    binary = binaries.open(os.getpid(), str(path))
    path.unlink()
    elf = parse_elf(FileBytes(str(built.pie)))
    text = elf.section(".text")
    assert text is not None
    assert binary.resolve(np.array([text.offset], np.uint64)) == ["_start"]


def test_truncated_after_the_table_was_built(
    binaries: Binaries, tmp_path: Path, built: Built
) -> None:
    path = tmp_path / "shrinking"
    shutil.copy(built.pie, path)
    binary = binaries.open(os.getpid(), str(path))
    elf = parse_elf(FileBytes(str(built.pie)))
    text = elf.section(".text")
    assert text is not None
    assert binary.resolve(np.array([text.offset], np.uint64)) == ["_start"]
    os.truncate(path, 100)
    names = binary.resolve(np.arange(text.offset, text.offset + text.size, dtype=np.uint64))
    assert "_start" in names
    assert all(name == "_start" or name.startswith("+0x") for name in names)
    assert sum(binaries.unresolved.values()) > 0


def test_a_symbol_table_that_claims_to_be_endless(built: Built) -> None:
    whole = bytearray(built.pie.read_bytes())
    elf = parse_elf(MemoryBytes(bytes(whole), "whole"))
    symtab = next(s for s in elf.sections if s.name == ".symtab")
    at = int.from_bytes(whole[0x28:0x30], "little") + symtab.index * 64 + 32
    whole[at : at + 8] = (1 << 62).to_bytes(8, "little")
    names = name_all(bytes(whole))
    assert isinstance(names, list)
