"""Function starts of stripped binaries: the same whether kept or read when asked for."""

from __future__ import annotations

import struct
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest

from nodescope.symbols.eh_frame import FunctionStarts, read_function_starts
from nodescope.symbols.elf import PT_GNU_EH_FRAME, parse_elf
from nodescope.symbols.file_bytes import FileBytes, MemoryBytes
from nodescope.symbols.unresolved import Reason, Unresolvable

HEADER_BYTES = 12  # version and encodings, pointer, count


@pytest.fixture(scope="module")
def libc() -> bytes:
    lines = Path("/proc/self/maps").read_text().splitlines()
    mapped = [line.split()[-1] for line in lines if "libc.so" in line]
    if not mapped:
        pytest.skip("there is no shared libc here")
    return Path(mapped[0]).read_bytes()


def find_table(data: bytes) -> tuple[int, int]:
    """Where the table of entries is in the file, and the address it counts from."""
    elf = parse_elf(MemoryBytes(data, "libc"))
    segment = next(each for each in elf.segments if each.type == PT_GNU_EH_FRAME)
    return segment.offset, segment.address


def read_by_hand(data: bytes) -> list[int]:
    offset, base = find_table(data)
    (count,) = struct.unpack_from("<I", data, offset + 8)
    entries = struct.iter_unpack("<ii", data[offset + HEADER_BYTES :][: count * 8])
    return [base + start for start, _ in entries]


def read(data: bytes) -> FunctionStarts:
    starts = read_function_starts(parse_elf(MemoryBytes(data, "libc")))
    assert starts is not None
    return starts


def test_every_address_falls_into_the_function_the_table_says(libc: bytes) -> None:
    table = read_by_hand(libc)
    around = np.array([start + step for start in table for step in (-1, 0, 1)], np.uint64)
    expected = [table[max(0, bisect_right(table, each) - 1)] for each in around.tolist()]
    expected[0] = int(around[0])  # before the first function: itself
    assert read(libc).start_of(around).tolist() == expected


def test_only_one_in_many_is_kept(libc: bytes) -> None:
    assert read(libc).nbytes <= len(read_by_hand(libc)) * 4 // 32


def test_far_away_addresses_are_themselves(libc: bytes) -> None:
    far = np.array([0, 1 << 40, (1 << 64) - 1], np.uint64)
    assert read(libc).start_of(far).tolist() == far.tolist()


def test_a_table_out_of_order_is_not_believed(libc: bytes) -> None:
    offset, _ = find_table(libc)
    place = offset + HEADER_BYTES + 8 * 100
    swapped = libc[: place - 8] + libc[place : place + 8] + libc[place - 8 : place]
    with pytest.raises(Unresolvable) as raised:
        read(swapped + libc[place + 8 :])
    assert raised.value.why is Reason.MALFORMED


def test_a_file_that_shrank_meanwhile_is_said_to_have(libc: bytes, tmp_path: Path) -> None:
    path = tmp_path / "libc"
    path.write_bytes(libc)
    starts = read_function_starts(parse_elf(FileBytes(str(path))))
    assert starts is not None
    path.write_bytes(b"")
    with pytest.raises(Unresolvable):
        starts.start_of(np.array(read_by_hand(libc)[:1], np.uint64))
