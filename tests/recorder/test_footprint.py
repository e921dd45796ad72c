"""What the recorder unmaps: pages that are in a file as they are in memory, and no others."""

from __future__ import annotations

import subprocess
import sys

from nodescope.recorder.footprint import find_clean, parse_mappings

LIBRARY = b"/usr/lib/with a blank/libx.so"


def mapping(start: int, rights: bytes, file: bytes, anonymous: int = 0, swap: int = 0) -> bytes:
    inode = 7 if file.startswith(b"/") else 0
    return b"%x-%x %s 00000000 fe:00 %d%s\n" % (
        start, start + 0x2000, rights, inode, b"   " + file if file else b" ",
    ) + b"Size:   8 kB\nRss:   8 kB\nAnonymous:   %d kB\nSwap:   %d kB\nVmFlags: rd mr mw \n" % (
        anonymous, swap,
    )  # fmt: skip


def clean(*content: bytes) -> list[int]:
    return [address for address, _ in find_clean(parse_mappings(b"".join(content)))]


def test_code_and_constants_of_a_library_are_clean() -> None:
    content = mapping(0x1000, b"r--p", LIBRARY) + mapping(0x4000, b"r-xp", LIBRARY)
    assert find_clean(parse_mappings(content)) == [(0x1000, 0x2000), (0x4000, 0x2000)]


def test_what_was_written_to_is_not() -> None:
    code = mapping(0x1000, b"r-xp", LIBRARY)
    relocations = mapping(0x4000, b"r--p", LIBRARY, anonymous=8)
    swapped = mapping(0x7000, b"r--p", LIBRARY, swap=4)
    data = mapping(0xA000, b"rw-p", LIBRARY)
    patched = mapping(0xD000, b"r-xp", b"/usr/lib/liby.so", anonymous=4)
    assert clean(code, relocations, swapped, data, patched) == [0x1000]


def test_what_is_no_library_is_not() -> None:
    code = mapping(0x1000, b"r-xp", LIBRARY)
    others = [
        mapping(0x4000, b"r--p", b"/var/data"),
        mapping(0x7000, b"r--s", LIBRARY),
        mapping(0xA000, b"rw-p", b""),
        mapping(0xD000, b"r-xp", b"[vdso]"),
    ]
    assert clean(code, *others) == [0x1000]


def test_everything_works_afterwards() -> None:
    program = """
import re
import numpy
import pyarrow
from nodescope.recorder.footprint import let_go, settle

def resident():
    return int(re.search(r"RssFile:\\s+(\\d+)", open("/proc/self/status").read())[1])

before = resident()
settle()
let_go()
assert resident() < before / 2, (before, resident())
for _ in range(2):
    assert numpy.arange(10).sum() == 45
    assert pyarrow.array(["a", "b"]).to_pylist() == ["a", "b"]
    let_go(collect=True)
import decimal  # a library more
let_go()
assert decimal.Decimal(1) / 4 == decimal.Decimal("0.25")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
