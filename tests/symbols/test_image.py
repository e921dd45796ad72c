from __future__ import annotations

import lzma
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nodescope.symbols.address_map import make_address_map
from nodescope.symbols.elf import parse_elf
from nodescope.symbols.file_bytes import FileBytes
from nodescope.symbols.image import Image
from nodescope.symbols.unresolved import Reason

if TYPE_CHECKING:
    from tests.symbols.conftest import Built

FUNCTIONS = {"local_one", "global_two", "weak_three", "raw_assembly", "main"}


def open_image(path: Path, *roots: str) -> Image:
    return Image(parse_elf(FileBytes(str(path))), str(path), roots)


def nm(path: Path) -> dict[str, int]:
    """Function addresses according to binutils."""
    text = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {r[2]: int(r[0], 16) for r in rows if len(r) == 3 and r[1] in "tTwWi"}


def offset_of(image: Image, address: int) -> int:
    offset = image.elf.file_offset(address)
    assert offset is not None
    return offset


def resolve(image: Image, *offsets: int) -> list[str]:
    return image.resolve(np.array(offsets, np.uint64), Counter())


@pytest.mark.parametrize("shape", ["pie", "fixed", "static"])
def test_every_function_has_the_name_nm_gives_it(built: Built, shape: str) -> None:
    path = getattr(built, shape)
    image = open_image(path)
    addresses = nm(path)
    for name in FUNCTIONS:
        # `__aliased` shares the address of `global_two`, with more underscores
        assert resolve(image, offset_of(image, addresses[name])) == [name]
        assert resolve(image, offset_of(image, addresses[name]) + 1) == [name]


def test_all_of_a_static_libc_agrees_with_nm(built: Built) -> None:
    image = open_image(built.static)
    by_address: dict[int, set[str]] = {}
    for name, address in nm(built.static).items():
        by_address.setdefault(address, set()).add(name)
    addresses = [a for a in by_address if image.elf.file_offset(a) is not None]
    names = resolve(image, *(offset_of(image, a) for a in addresses))
    wrong = [(a, n) for a, n in zip(addresses, names, strict=True) if n not in by_address[a]]
    assert len(addresses) > 1000
    assert len(wrong) < 0.01 * len(addresses), wrong


def test_build_id_is_what_readelf_says(built: Built) -> None:
    text = subprocess.run(["readelf", "-n", built.pie], check=True, capture_output=True, text=True)
    build_id = open_image(built.pie).build_id
    assert build_id is not None
    assert build_id.hex() in text.stdout


def test_plt_stubs_are_named_after_their_target(built: Built) -> None:
    image = open_image(built.pie)
    section = image.elf.section(".plt.sec") or image.elf.section(".plt")
    assert section is not None
    names = resolve(image, *range(section.offset + 16, section.offset + section.size, 16))
    assert set(names) <= {"puts@plt", "fflush@plt", "pause@plt", "strlen@plt"}
    assert "puts@plt" in names


def test_a_stripped_function_has_one_name_its_start(built: Built) -> None:
    addresses = nm(built.pie)
    image = open_image(built.stripped)
    start = offset_of(image, addresses["local_one"])
    assert resolve(image, start, start + 1, start + 3) == [f"+0x{start:x}"] * 3
    assert image.reason is Reason.NO_FUNCTION


def test_symbols_come_from_the_debug_file_of_the_same_build_id(
    built: Built, tmp_path: Path
) -> None:
    build_id = open_image(built.pie).build_id
    assert build_id is not None
    digits = build_id.hex()
    folder = tmp_path / "usr/lib/debug/.build-id" / digits[:2]
    folder.mkdir(parents=True)
    debug = folder / f"{digits[2:]}.debug"
    subprocess.run(["objcopy", "--only-keep-debug", built.pie, debug], check=True)
    image = open_image(built.stripped, str(tmp_path))
    start = offset_of(image, nm(built.pie)["local_one"])
    assert resolve(image, start + 1) == ["local_one"]

    other = tmp_path / "usr/lib/debug/.build-id" / digits[:2] / f"{digits[2:]}.debug"
    shutil.copy(built.fixed, other)
    assert resolve(open_image(built.stripped, str(tmp_path)), start + 1) == [f"+0x{start:x}"]


def test_symbols_come_from_a_debug_link_beside_the_binary(built: Built, tmp_path: Path) -> None:
    debug = tmp_path / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", built.pie, debug], check=True)
    binary = tmp_path / "program"
    shutil.copy(built.stripped, binary)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", binary], check=True)
    image = open_image(binary, "")
    assert resolve(image, offset_of(image, nm(built.pie)["local_one"])) == ["local_one"]


def test_symbols_come_from_mini_debug_info(built: Built, tmp_path: Path) -> None:
    debug = tmp_path / "mini"
    subprocess.run(["objcopy", "--only-keep-debug", built.pie, debug], check=True)
    packed = tmp_path / "mini.xz"
    packed.write_bytes(lzma.compress(debug.read_bytes()))
    binary = tmp_path / "program"
    subprocess.run(
        ["objcopy", "--add-section", f".gnu_debugdata={packed}", built.stripped, binary],
        check=True,
    )
    image = open_image(binary)
    assert resolve(image, offset_of(image, nm(built.pie)["local_one"])) == ["local_one"]


def test_without_section_headers_segments_still_speak(built: Built, tmp_path: Path) -> None:
    data = bytearray(built.pie.read_bytes())
    data[0x28:0x30] = bytes(8)  # e_shoff
    data[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
    path = tmp_path / "headless"
    path.write_bytes(data)
    image = open_image(path)
    assert image.build_id == open_image(built.pie).build_id
    start = offset_of(image, nm(built.pie)["local_one"])
    assert resolve(image, start + 2) == [f"+0x{start:x}"]


def test_addresses_outside_the_image_are_their_own_name(built: Built) -> None:
    image = open_image(built.pie)
    assert resolve(image, 1 << 40, (1 << 64) - 1) == [f"+0x{1 << 40:x}", f"+0x{(1 << 64) - 1:x}"]


def test_offsets_go_to_addresses_and_back(built: Built) -> None:
    elf = parse_elf(FileBytes(str(built.fixed)))
    address_map = make_address_map(elf)
    address = nm(built.fixed)["main"]
    offset = address_map.file_offset(address)
    assert offset is not None
    assert address_map.addresses(np.array([offset], np.uint64)).tolist() == [address]


def test_a_closed_image_counts_as_evicted(built: Built) -> None:
    image = open_image(built.pie)
    image.close()
    unresolved: Counter[Reason] = Counter()
    assert image.resolve(np.array([4096], np.uint64), unresolved) == ["+0x1000"]
    assert unresolved == {Reason.EVICTED: 1}
    assert image.descriptors == 0
