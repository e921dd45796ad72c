"""The exact state of one path: kind, content, mode, owner, attributes and time."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from nodescope.errors import RemedyError
from nodescope.records.json import Json

FileKind = Literal["absent", "file", "link", "folder"]


@dataclass(frozen=True, slots=True)
class FileState:
    """A path as it is, or as it is to be."""

    kind: FileKind
    content: bytes = b""  # of a file; of a link its target
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime_ns: int | None = None  # None: the moment at which it is made
    attributes: tuple[tuple[str, bytes], ...] = ()  # extended attributes, sorted
    entries: tuple[str, ...] = ()  # the names in a folder, sorted

    def resembles(self, other: FileState) -> bool:
        """Decide whether both hold the same: kind and content, not times and owners."""
        return self.kind == other.kind and self.content == other.content

    def to_json(self) -> dict[str, Json]:
        """Return it as JSON."""
        return {
            "kind": self.kind,
            "content": _encode(self.content),
            "mode": self.mode,
            "uid": self.uid,
            "gid": self.gid,
            "mtime_ns": self.mtime_ns,
            "attributes": [[name, _encode(value)] for name, value in self.attributes],
            "entries": [_encode(name.encode("utf-8", "surrogateescape")) for name in self.entries],
        }


ABSENT = FileState("absent")


def parse_state(document: Json) -> FileState:
    """Return the state that `to_json` wrote; `RemedyError` if it is none."""
    if isinstance(document, Mapping):
        for kind in get_args(FileKind):
            if document.get("kind") == kind:
                return FileState(
                    kind,
                    _decode(document.get("content")),
                    _whole(document.get("mode")),
                    _whole(document.get("uid")),
                    _whole(document.get("gid")),
                    None if document.get("mtime_ns") is None else _whole(document["mtime_ns"]),
                    tuple(_attribute(each) for each in _list(document.get("attributes"))),
                    tuple(
                        _decode(each).decode("utf-8", "surrogateescape")
                        for each in _list(document.get("entries"))
                    ),
                )
    raise _damaged()


def _attribute(document: Json) -> tuple[str, bytes]:
    name, value = _list(document)
    return str(name), _decode(value)


def _encode(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decode(text: Json) -> bytes:
    if not isinstance(text, str):
        raise _damaged()
    return base64.b64decode(text)


def _whole(value: Json) -> int:
    if not isinstance(value, int):
        raise _damaged()
    return value


def _list(value: Json) -> Sequence[Json]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _damaged()
    return value


def _damaged() -> RemedyError:
    return RemedyError(
        "the journal does not hold what this step stored",
        hint="it may be of another version of Nodescope; nothing was changed",
    )
