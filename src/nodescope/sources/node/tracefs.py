"""The kernel's tracepoints, as tracefs describes them (Documentation/trace/events.rst).

Of tracefs only descriptions are read: the id of a tracepoint and the layout of
its record. The records themselves come through perf. Where tracefs is mounted
nowhere, it is mounted for this process alone: a mount that is attached to no
folder goes with its descriptor and leaves nothing behind (fsmount, v5.2); before
that it is mounted where every other tool expects it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from nodescope.errors import MalformedSource, SourceAbsent, SourceError, source_error
from nodescope.sources.node.detached_mount import mount_detached
from nodescope.sources.places import Places

_NO_SUID, _NO_EXEC = 2, 8
_MOUNT_POINT = "/sys/kernel/tracing"

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class TracepointField:
    """Where a field of a tracepoint's record stands."""

    offset: int
    size: int
    signed: bool
    text: bool = False  # `__data_loc char[]`: its offset in the low, its length in the high half
    relative: bool = False  # `__rel_data_loc`: that offset counts from the field's own end


@dataclass(frozen=True, slots=True)
class TracepointFormat:
    """One tracepoint: its id, and its fields by name."""

    name: str
    number: int
    fields: Mapping[str, TracepointField]

    def field(self, *names: str) -> TracepointField:
        """The first of these fields that this kernel has."""
        for name in names:
            if name in self.fields:
                return self.fields[name]
        raise MalformedSource(f"tracepoint {self.name}", f"it has no field {names[0]}")


def parse_format(content: bytes, path: str | Path = "format") -> TracepointFormat:
    """Parse the `format` file of a tracepoint."""
    name, number = "", None
    fields: dict[str, TracepointField] = {}
    for at, line in enumerate(content.decode("ascii", "replace").splitlines(), 1):
        key, _, rest = line.strip().partition(":")
        try:
            if key == "name":
                name = rest.strip()
            elif key == "ID":
                number = int(rest)
            elif key == "field":
                declared, field = _parse_field(rest)
                fields[declared] = field
        except (ValueError, KeyError, IndexError) as error:
            raise MalformedSource(path, f"not a field: {line.strip()[:80]!r}", at) from error
    if not name or number is None:
        raise MalformedSource(path, "neither name nor ID")
    return TracepointFormat(name, number, fields)


def _parse_field(rest: str) -> tuple[str, TracepointField]:
    """`__data_loc char[] path;	offset:24;	size:4;	signed:0;`"""
    declaration, *parts = [part.strip() for part in rest.split(";") if part.strip()]
    facts = dict(part.split(":", 1) for part in parts)
    field = TracepointField(
        offset=int(facts["offset"]),
        size=int(facts["size"]),
        signed=facts.get("signed", "0") == "1",
        text=declaration.startswith(("__data_loc char", "__rel_loc char", "__rel_data_loc char")),
        relative=declaration.startswith("__rel"),
    )
    return declaration.split()[-1].partition("[")[0], field


class Tracefs:
    """An open tracefs; `close` gives back what was mounted for it."""

    def __init__(self, descriptor: int, where: str) -> None:
        self._descriptor = descriptor
        self.where = where

    def read_format(self, system: str, name: str) -> TracepointFormat:
        """The description of one tracepoint."""
        path = f"events/{system}/{name}/format"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._descriptor)
            with open(descriptor, "rb") as file:
                return parse_format(file.read(), f"{self.where}/{path}")
        except OSError as error:
            raise source_error(f"{self.where}/{path}", error) from error

    def close(self) -> None:
        """Give it back."""
        os.close(self._descriptor)

    def __enter__(self) -> Tracefs:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_tracefs(places: Places, *, mount: bool = True) -> Tracefs:
    """Tracefs where it is mounted, else (if `mount`) mounted for us."""
    for folder in (places.sys / "kernel/tracing", places.sys / "kernel/debug/tracing"):
        try:
            if (folder / "events").is_dir():
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
                return Tracefs(os.open(folder, flags), str(folder))
        except OSError as error:
            raise source_error(folder, error) from error
    if not mount:
        raise SourceAbsent(
            places.sys / "kernel/tracing",
            "tracefs is not mounted",
            hint=f"mount -t tracefs tracefs {_MOUNT_POINT}",
        )
    return _mount()


def _mount() -> Tracefs:
    try:
        return Tracefs(mount_detached("tracefs"), "tracefs")
    except OSError as error:
        denied: SourceError = source_error("tracefs", error)
    if _libc.mount(b"tracefs", _MOUNT_POINT.encode(), b"tracefs", _NO_SUID | _NO_EXEC, None) != 0:
        denied.hint = f"as root: mount -t tracefs tracefs {_MOUNT_POINT}"
        raise denied
    return Tracefs(os.open(_MOUNT_POINT, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), _MOUNT_POINT)
