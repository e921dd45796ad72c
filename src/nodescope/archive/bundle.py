"""A bundle: a slice of an archive in one file, to be read anywhere.

A bundle is a zip file whose members are stored, not compressed (segments are
already), so that a table is a run of bytes of the file and nothing is extracted::

    archive.json                  of which node it is, as in a folder
    segments/NAME/segment.json    a sealed segment, as in a folder
    segments/NAME/TABLE.parquet
    bundle.json                   the time range, and each member's size and BLAKE2b digest

Segments at the edges are cut to the range and sealed again: they are ordinary
segments, and so is every other one.

A bundle comes from somebody else, so nothing in it is taken on trust: a member
that is compressed, encrypted, named twice, named like anything but the above,
larger than the file, or not what its digest says, is refused by name.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nodescope.archive.files import MAX_JSON_BYTES, SEGMENT_FILE, archive_error, parse_json
from nodescope.archive.layout import ARCHIVE_FILE, SEALED_DIRECTORY, check_format, parse_sequence
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat
from nodescope.records import SEALED_TABLES
from nodescope.records.json import JsonObject

BUNDLE_FORMAT = 1
BUNDLE_FILE = "bundle.json"
DIGEST_BYTES = 16
_MAX_INDEX_BYTES = 64 << 20  # bundle.json of a year of segments
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 1
_MEMBER = re.compile(
    rf"{SEALED_DIRECTORY}/([0-9]+-[0-9TZ]+)/({re.escape(SEGMENT_FILE)}|({'|'.join(SEALED_TABLES)})\.parquet)"
)
_HINT = "give a bundle as it was exported, or copy it again"


@dataclass(frozen=True, slots=True)
class Member:
    """A run of bytes of the file, and what they must hash to."""

    header: int  # offset of the member's own header
    bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened bundle: its index was read and checked, its members are read when asked for."""

    path: Path
    from_ns: int
    to_ns: int
    created_ns: int
    members: dict[str, Member]

    @property
    def segment_names(self) -> list[str]:
        """Segments by sequence number."""
        names = {match[1] for name in self.members if (match := _MEMBER.fullmatch(name))}
        return sorted(names, key=lambda name: (parse_sequence(name) or 0, name))

    def where(self, name: str) -> str:
        """A member as messages call it."""
        return f"{self.path}:{name}"

    def read(self, name: str) -> bytes:
        """The bytes of a member, held against their digest."""
        member = self.members.get(name)
        if member is None:
            raise CorruptSegment(self.where(name), "missing")
        with _opened(self.path) as descriptor:
            data = _read_member(descriptor, self.where(name), member.header, member.bytes)
        if digest(data) != member.digest:
            raise CorruptSegment(self.where(name), "its bytes are not those that were bundled")
        return data

    def find_changed(self) -> list[CorruptSegment]:
        """Return the tables whose bytes are not those that were bundled; it reads all of them."""
        changed = []
        for name in self.members:
            if name.endswith(".parquet"):
                try:
                    self.read(name)
                except CorruptSegment as error:
                    changed.append(error)
        return changed

    def read_json(self, name: str) -> JsonObject:
        """A member that is JSON, of bounded size."""
        member = self.members.get(name)
        if member is not None and member.bytes > MAX_JSON_BYTES:
            raise CorruptSegment(self.where(name), f"larger than {MAX_JSON_BYTES} bytes")
        return parse_json(self.where(name), self.read(name))


def digest(data: bytes | memoryview) -> str:
    """Return the digest that `bundle.json` has of a member."""
    from hashlib import blake2b  # it loads OpenSSL, which a recorder does without

    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def open_bundle(path: Path) -> Bundle:
    """Read and check a bundle's index."""
    with _opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        listed = _list_members(path, descriptor, size)
        if BUNDLE_FILE not in listed:
            raise ArchiveError(path, f"not a bundle: it has no {BUNDLE_FILE}", hint=_HINT)
        header, length = listed.pop(BUNDLE_FILE)
        where = f"{path}:{BUNDLE_FILE}"
        if length > _MAX_INDEX_BYTES:
            raise ArchiveError(where, f"larger than {_MAX_INDEX_BYTES} bytes", hint=_HINT)
        content = parse_json(where, _read_member(descriptor, where, header, length))
    number = content.get("bundle")
    if isinstance(number, int) and number > BUNDLE_FORMAT:
        raise NewerFormat(
            path,
            f"a bundle of format {number}; this Nodescope reads formats up to {BUNDLE_FORMAT}",
            hint="read it with the Nodescope that wrote it, or a later one",
        )
    check_format(Path(where), content.get("format"))
    from_ns, to_ns, created_ns = (
        _moment(where, content.get(name)) for name in ("from", "to", "created")
    )
    members = _match(where, listed, content.get("members"))
    return Bundle(path, from_ns, to_ns, created_ns, members)


def _moment(where: str, value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ArchiveError(where, "does not say which time it holds", hint=_HINT)
    return value


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    # O_NONBLOCK: a FIFO in its place must not hang us.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise archive_error(path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ArchiveError(path, "neither a folder nor a regular file", hint=_HINT)
        yield descriptor
    finally:
        os.close(descriptor)


def _list_members(path: Path, descriptor: int, size: int) -> dict[str, tuple[int, int]]:
    """Where each member begins and how long it is, as the file's directory says."""
    import zipfile  # 20 ms, which only a bundle should cost

    try:
        with open(descriptor, "rb", closefd=False) as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    # zipfile raises whatever its reading of a broken directory runs into.
    except (zipfile.BadZipFile, ValueError, OverflowError, struct.error, NotImplementedError,
            OSError, UnicodeError) as error:  # fmt: skip
        raise ArchiveError(
            path, f"not an archive: neither a folder nor a whole bundle ({error})", hint=_HINT
        ) from error
    listed: dict[str, tuple[int, int]] = {}
    total = 0
    for entry in entries:
        name = entry.filename
        shown = f"its member {name!r:.100}"
        if name not in (ARCHIVE_FILE, BUNDLE_FILE) and not _is_ours(name):
            raise ArchiveError(path, f"{shown} is none of a bundle's", hint=_HINT)
        if name in listed:
            raise ArchiveError(path, f"{shown} is there twice", hint=_HINT)
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise ArchiveError(path, f"{shown} is compressed, a bundle's are not", hint=_HINT)
        if entry.flag_bits & _ENCRYPTED:
            raise ArchiveError(path, f"{shown} is encrypted", hint=_HINT)
        total += entry.file_size
        if entry.header_offset < 0 or total > size:
            raise ArchiveError(path, f"{shown} reaches beyond the end of the file", hint=_HINT)
        listed[name] = (entry.header_offset, entry.file_size)
    return listed


def _is_ours(name: str) -> bool:
    match = _MEMBER.fullmatch(name)
    return match is not None and parse_sequence(match[1]) is not None


def _match(where: str, listed: dict[str, tuple[int, int]], told: object) -> dict[str, Member]:
    """Members of the file, each with what the index says of it; both must list the same."""
    if not isinstance(told, dict):
        raise ArchiveError(where, "does not list its members", hint=_HINT)
    odd = sorted(set(told) ^ set(listed))
    if odd:
        raise ArchiveError(where, f"it and the file disagree about {odd[0]!r:.100}", hint=_HINT)
    members = {}
    for name, (header, length) in listed.items():
        pair = told[name]
        if not isinstance(pair, list) or len(pair) != 2 or pair[0] != length:
            raise ArchiveError(where, f"says another size of {name!r}", hint=_HINT)
        members[name] = Member(header, length, str(pair[1]))
    return members


def _read_member(descriptor: int, where: str, header: int, length: int) -> bytes:
    head = os.pread(descriptor, _LOCAL_HEADER.size, header)
    if len(head) < _LOCAL_HEADER.size:
        raise CorruptSegment(where, "the file ends", header)
    signature, name_length, extra_length = _LOCAL_HEADER.unpack(head)
    if signature != b"PK\x03\x04":
        raise CorruptSegment(where, "no member begins", header)
    start = header + _LOCAL_HEADER.size + name_length + extra_length
    data = bytearray()
    while len(data) < length:
        piece = os.pread(descriptor, length - len(data), start + len(data))
        if not piece:
            raise CorruptSegment(where, "the file ends", start + len(data))
        data += piece
    return bytes(data)
