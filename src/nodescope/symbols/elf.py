"""ELF images: headers, segments, sections, build-id (System V gABI, chapters 4 and 5).

`parse_elf` reads a few kilobytes: the file header, the program headers, and
the section headers when there are any. It never follows more than one offset
at a time, every count has a limit below, and whatever does not fit raises
`Unresolvable`. Little-endian 64-bit images only; all others are refused by
reason, because no node we record runs them.

Damaged or stripped section headers are not an error: segments alone give the
address mapping, the build-id and `.eh_frame_hdr`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from nodescope.symbols.file_bytes import ByteSource
from nodescope.symbols.unresolved import Reason, Unresolvable

MAX_SEGMENTS = 512
MAX_SECTIONS = 8192
MAX_SECTION_NAMES_BYTES = 256 << 10
MAX_NOTE_BYTES = 64 << 10
MAX_NOTES = 1024
MAX_BUILD_ID_BYTES = 64

PT_LOAD, PT_NOTE, PT_GNU_EH_FRAME = 1, 4, 0x6474E550
PF_X, PF_W = 1, 2
SHT_SYMTAB, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 2, 7, 8, 11
SHF_EXECINSTR, SHF_COMPRESSED = 4, 0x800
NT_GNU_BUILD_ID = 3
EM_X86_64, EM_AARCH64, EM_ARM, EM_RISCV = 62, 183, 40, 243

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOTE = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class LoadSegment:
    """One program header."""

    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int


@dataclass(frozen=True, slots=True)
class Section:
    """One section header."""

    index: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry_size: int


@dataclass(frozen=True, slots=True)
class Elf:
    """The headers of an ELF image."""

    source: ByteSource
    machine: int
    segments: tuple[LoadSegment, ...]
    sections: tuple[Section, ...]
    build_id: bytes | None

    def section(self, *names: str) -> Section | None:
        """The first section with content that bears one of `names`, in their order."""
        for name in names:
            for section in self.sections:
                if section.name == name and section.type != SHT_NOBITS and section.size:
                    return section
        return None

    def section_of_type(self, section_type: int) -> Section | None:
        """The first section of that type."""
        for section in self.sections:
            if section.type == section_type and section.size:
                return section
        return None

    def read_section(self, section: Section, limit: int) -> bytes:
        """A small section's content, refused above `limit`."""
        if section.size > limit:
            raise Unresolvable(self.source.label, Reason.TOO_LARGE, section.name)
        return self.source.read_at(section.offset, section.size)

    def file_offset(self, address: int) -> int | None:
        """Where in the file the byte at a virtual address lives."""
        for segment in self.segments:
            if segment.type == PT_LOAD:
                into = address - segment.address
                if 0 <= into < segment.file_size:
                    return segment.offset + into
        return None


def parse_elf(source: ByteSource) -> Elf:
    """Read the headers of an image; raises `Unresolvable`."""
    data = source.read_up_to(0, _HEADER.size)
    if data[:4] != b"\x7fELF":
        raise Unresolvable(source.label, Reason.NOT_ELF)
    if len(data) < _HEADER.size:
        raise Unresolvable(source.label, Reason.TRUNCATED)
    if data[4:6] != b"\x02\x01":
        raise Unresolvable(source.label, Reason.UNSUPPORTED, "only 64-bit little-endian")
    (_, _, machine, _, _, ph_offset, sh_offset, _, _, ph_size, ph_count, sh_size, sh_count,
     names_index) = _HEADER.unpack(data)  # fmt: skip
    segments = _read_segments(source, ph_offset, ph_size, ph_count)
    sections = _read_sections(source, sh_offset, sh_size, sh_count, names_index)
    if not segments and not sections:
        raise Unresolvable(source.label, Reason.MALFORMED, "neither segments nor sections")
    return Elf(source, machine, segments, sections, _find_build_id(source, segments, sections))


def _read_segments(
    source: ByteSource, offset: int, entry_size: int, count: int
) -> tuple[LoadSegment, ...]:
    if not count:
        return ()
    if entry_size != _SEGMENT.size or count > MAX_SEGMENTS:
        raise Unresolvable(source.label, Reason.MALFORMED, "program headers")
    data = source.read_at(offset, count * _SEGMENT.size)
    return tuple(
        LoadSegment(type_, flags, at, address, file_size, memory_size)
        for type_, flags, at, address, _, file_size, memory_size, _ in _SEGMENT.iter_unpack(data)
    )


def _read_sections(
    source: ByteSource, offset: int, entry_size: int, count: int, names_index: int
) -> tuple[Section, ...]:
    """Section headers, or none when they are absent or make no sense."""
    if not offset or entry_size != _SECTION.size:
        return ()
    try:
        first = _SECTION.unpack(source.read_at(offset, _SECTION.size))
        # gABI: counts that do not fit in 16 bits live in section 0.
        count = count or first[5]
        names_index = first[6] if names_index == 0xFFFF else names_index
        if not 0 < count <= MAX_SECTIONS or names_index >= count:
            return ()
        headers = list(_SECTION.iter_unpack(source.read_at(offset, count * _SECTION.size)))
        names_header = headers[names_index]
        names = source.read_up_to(names_header[4], min(names_header[5], MAX_SECTION_NAMES_BYTES))
    except Unresolvable:
        return ()
    return tuple(
        Section(i, _name_at(names, h[0]), h[1], h[2], h[3], h[4], h[5], h[6], h[9])
        for i, h in enumerate(headers)
    )


def _name_at(names: bytes, offset: int) -> str:
    stop = names.find(b"\0", offset, offset + 256)
    return names[offset:stop].decode("ascii", "replace") if stop >= 0 else ""


def _find_build_id(
    source: ByteSource, segments: tuple[LoadSegment, ...], sections: tuple[Section, ...]
) -> bytes | None:
    places = [(s.offset, s.file_size) for s in segments if s.type == PT_NOTE]
    # A separate debug file keeps the segments' headers but not their bytes, so
    # sections come first where they exist.
    places[:0] = [(s.offset, s.size) for s in sections if s.name == ".note.gnu.build-id"]
    for offset, size in places[:16]:
        data = source.read_up_to(offset, min(size, MAX_NOTE_BYTES))
        found = parse_build_id(data)
        if found:
            return found
    return None


def parse_build_id(notes: bytes) -> bytes | None:
    """The GNU build-id among ELF notes, if there is one."""
    position = 0
    for _ in range(MAX_NOTES):
        if position + _NOTE.size > len(notes):
            return None
        name_size, size, note_type = _NOTE.unpack_from(notes, position)
        name_at = position + _NOTE.size
        body_at = name_at + (name_size + 3 & ~3)
        if note_type == NT_GNU_BUILD_ID and notes[name_at : name_at + name_size] == b"GNU\0":
            body = notes[body_at : body_at + size]
            return body if 0 < size <= MAX_BUILD_ID_BYTES and len(body) == size else None
        position = body_at + (size + 3 & ~3)
    return None
