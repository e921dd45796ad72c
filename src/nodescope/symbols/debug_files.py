"""Where a stripped binary's symbols may still be: separate debug files.

In GDB's order ("Debugging Information in Separate Files"): by build-id under
`/usr/lib/debug/.build-id`, by `.gnu_debuglink` beside the binary, in `.debug/`
and under the debug root; and Fedora's MiniDebugInfo, a small xz-packed ELF in
section `.gnu_debugdata`. A file is taken only if its build-id is the binary's.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator

from nodescope.symbols.elf import SHT_SYMTAB, Elf, parse_elf
from nodescope.symbols.file_bytes import MAX_READ_BYTES, FileBytes, MemoryBytes
from nodescope.symbols.unresolved import Unresolvable

DEBUG_ROOT = "/usr/lib/debug"
MAX_UNPACKED_BYTES = 4 << 20
MAX_UNPACK_MEMORY_BYTES = 16 << 20
_MAX_LINK_BYTES = 4096


def find_debug_file(elf: Elf, path: str, roots: tuple[str, ...]) -> Elf | None:
    """The separate symbols of the binary seen at `path`, verified by build-id.

    `roots` are the file systems to look in: the process's own, then ours.
    """
    if elf.build_id is None:
        return None
    for candidate in _candidates(elf, path, roots):
        try:
            source = FileBytes(candidate)
        except Unresolvable:
            continue
        try:
            found = parse_elf(source)
            if found.build_id == elf.build_id and found.section_of_type(SHT_SYMTAB):
                return found
        except Unresolvable:
            pass
        source.close()
    return None


def _candidates(elf: Elf, path: str, roots: tuple[str, ...]) -> Iterator[str]:
    assert elf.build_id is not None
    digits = elf.build_id.hex()
    link = read_debug_link(elf)
    folder = path.rpartition("/")[0]
    for root in roots:
        if len(digits) > 2:
            yield f"{root}{DEBUG_ROOT}/.build-id/{digits[:2]}/{digits[2:]}.debug"
        if link:
            yield f"{root}{folder}/.debug/{link}"
            yield f"{root}{DEBUG_ROOT}{folder}/{link}"
            yield f"{root}{folder}/{link}"


def read_debug_link(elf: Elf) -> str | None:
    """The file name in `.gnu_debuglink`; never one that leaves its folder."""
    section = elf.section(".gnu_debuglink")
    if section is None:
        return None
    try:
        data = elf.read_section(section, _MAX_LINK_BYTES)
    except Unresolvable:
        return None
    name = data.split(b"\0", 1)[0].decode("utf-8", "replace")
    return name if name and "/" not in name and name not in (".", "..") else None


def unpack_mini_debug_info(elf: Elf) -> Elf | None:
    """The ELF image in `.gnu_debugdata`, if there is one that fits our limits."""
    section = elf.section(".gnu_debugdata")
    if section is None or section.size > MAX_READ_BYTES:
        return None
    unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_UNPACK_MEMORY_BYTES)
    try:
        packed = elf.source.read_at(section.offset, section.size)
        data = unpacker.decompress(packed, MAX_UNPACKED_BYTES)
        if not unpacker.eof:
            return None
        return parse_elf(MemoryBytes(data, f"{elf.source.label} .gnu_debugdata"))
    except (lzma.LZMAError, Unresolvable):
        return None
