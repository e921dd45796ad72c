"""An rpm header as its database keeps it: an index of tags and the store of their values.

rpm.org, "RPM v4 package format": two big-endian counts (index entries, bytes of the store), then
entries of four numbers (tag, type, offset, count), then the store.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from nodescope.errors import MalformedSource

_NAME, _VERSION, _RELEASE, _SOURCE_RPM = 1000, 1001, 1002, 1044
_PRE_INSTALL, _POST_INSTALL, _POST_TRANSACTION = 1023, 1024, 1152
_PROVIDES, _REQUIRES = 1047, 1049
_DIRECTORY_INDEXES, _BASE_NAMES, _DIRECTORIES = 1116, 1117, 1118
_TEXTS = (_NAME, _VERSION, _RELEASE, _SOURCE_RPM, _PRE_INSTALL, _POST_INSTALL, _POST_TRANSACTION)
_LISTS = (_PROVIDES, _REQUIRES, _BASE_NAMES, _DIRECTORIES)
_INT32, _STRING, _STRING_ARRAY, _I18N = 4, 6, 8, 9
_MAX_ENTRIES = 65_535
_MAX_COUNT = 1 << 20


@dataclass(frozen=True, slots=True)
class RpmHeader:
    """The tags that are read."""

    name: str
    version: str
    release: str
    source_rpm: str
    provides: tuple[str, ...]
    requires: tuple[str, ...]
    scripts: str
    paths: tuple[str, ...]


def parse_header(content: bytes, path: str) -> RpmHeader:
    """Return a header's tags; `MalformedSource` if it is none."""
    if len(content) < 8:
        raise MalformedSource(path, "a header shorter than its counts")
    entries, size = struct.unpack_from(">II", content)
    begin = 8 + 16 * entries
    if entries > _MAX_ENTRIES or begin + size > len(content):
        raise MalformedSource(path, "a header whose counts exceed its length")
    store = content[begin : begin + size]
    values: dict[int, list[str]] = {}
    indexes: tuple[int, ...] = ()
    for number in range(entries):
        tag, kind, offset, count = struct.unpack_from(">IIII", content, 8 + 16 * number)
        if offset > size or count > _MAX_COUNT:
            continue  # of a region, or damaged
        if tag == _DIRECTORY_INDEXES and kind == _INT32 and offset + 4 * count <= size:
            indexes = struct.unpack_from(f">{count}I", store, offset)
        elif tag in _TEXTS and kind in (_STRING, _I18N, _STRING_ARRAY):
            values[tag] = _strings(store, offset, 1)
        elif tag in _LISTS and kind == _STRING_ARRAY:
            values[tag] = _strings(store, offset, count)
    if not values.get(_NAME):
        raise MalformedSource(path, "a header without a name")
    folders, names = values.get(_DIRECTORIES, []), values.get(_BASE_NAMES, [])
    scripts = (_PRE_INSTALL, _POST_INSTALL, _POST_TRANSACTION)
    return RpmHeader(
        values[_NAME][0],
        "".join(values.get(_VERSION, ["?"])),
        "".join(values.get(_RELEASE, ["?"])),
        "".join(values.get(_SOURCE_RPM, [])),
        tuple(values.get(_PROVIDES, ())),
        tuple(values.get(_REQUIRES, ())),
        "\n".join(text for tag in scripts for text in values.get(tag, ())),
        tuple(
            f"{folders[index]}{name}"
            for index, name in zip(indexes, names, strict=False)
            if index < len(folders)
        ),
    )


def _strings(store: bytes, offset: int, count: int) -> list[str]:
    """Return so many strings that end with a zero byte."""
    found = []
    for _ in range(count):
        end = store.find(b"\0", offset)
        if end < 0:
            break
        found.append(store[offset:end].decode("utf-8", "replace"))
        offset = end + 1
    return found
