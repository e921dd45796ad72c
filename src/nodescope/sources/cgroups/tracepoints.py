"""Hits of the cgroup tracepoints, as perf rings hold them.

Their layout is what each tracepoint's `format` file describes. Other rings hold what processes
are renamed to and who started them: see `announced`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NamedTuple

from nodescope.sources.node.tracefs import TracepointField, TracepointFormat

_LOST, _SAMPLE = 2, 9  # PERF_RECORD_…
_HEADER = struct.Struct("<IHH")  # kind, misc, size
_HIT = struct.Struct("<IIQI")  # pid, tid, time, size of the tracepoint's own record
_RAW_AT = _HEADER.size + _HIT.size
_U16, _U32, _U64 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<Q")


class Hit(NamedTuple):
    """A tracepoint was hit."""

    time_ns: int
    tracepoint: str
    pid: int  # the process that ran into it
    root: int  # number of the hierarchy
    identity: int
    path: str
    task_pid: int | None  # of `cgroup_attach_task`: who was moved
    task_comm: str | None
    cgroup: int = 0  # id, in the unified hierarchy, of who ran into it; 0: not told


class TracepointLayout:
    """How one tracepoint's record is read."""

    def __init__(self, format_: TracepointFormat) -> None:
        self.name = format_.name
        self._root, self._read_root = _integer(format_.field("root", "dst_root"))
        self._id, self._read_id = _integer(format_.field("id", "dst_id"))
        self._path = format_.field("path", "dst_path")
        self._task = self._comm = None
        if "comm" in format_.fields:
            self._task, self._comm = _integer(format_.field("pid")), format_.field("comm")

    def read(self, time_ns: int, pid: int, data: bytes, at: int, cgroup: int = 0) -> Hit:
        """Return the hit whose record starts at `at`."""
        task = comm = None
        if self._task is not None and self._comm is not None:
            offset, reader = self._task
            task, comm = reader.unpack_from(data, at + offset)[0], _text(data, at, self._comm)
        return Hit(
            time_ns,
            self.name,
            pid,
            self._read_root.unpack_from(data, at + self._root)[0],
            self._read_id.unpack_from(data, at + self._id)[0],
            _text(data, at, self._path) or "/",
            task,
            comm,
            cgroup,
        )


def _integer(field: TracepointField) -> tuple[int, struct.Struct]:
    letter = {4: "i", 8: "q"}[field.size]  # ids were int before v5.5, u64 since
    return field.offset, struct.Struct("<" + (letter if field.signed else letter.upper()))


def _text(data: bytes, at: int, field: TracepointField) -> str:
    where = _U32.unpack_from(data, at + field.offset)[0]
    start = at + (where & 0xFFFF)
    if field.relative:
        start += field.offset + field.size
    return data[start : start + (where >> 16)].partition(b"\0")[0].decode("utf-8", "replace")


def parse_records(
    data: bytes, layouts: Mapping[int, TracepointLayout], *, cgroup: bool = False
) -> tuple[list[Hit], int]:
    """Return the hits of a drained ring, and how many were lost because it was full.

    `cgroup`: hits were opened with `PERF_SAMPLE_CGROUP`, which is their last word.
    """
    found: list[Hit] = []
    at = lost = 0
    while at + _HEADER.size <= len(data):
        kind, _misc, size = _HEADER.unpack_from(data, at)
        if kind == _SAMPLE:
            pid, _tid, time_ns, _size = _HIT.unpack_from(data, at + _HEADER.size)
            layout = layouts.get(_U16.unpack_from(data, at + _RAW_AT)[0])
            if layout is not None:
                own = _U64.unpack_from(data, at + size - 8)[0] if cgroup else 0
                found.append(layout.read(time_ns, pid, data, at + _RAW_AT, own))
        elif kind == _LOST:
            lost += _U64.unpack_from(data, at + 16)[0]
        at += max(size, _HEADER.size)
    return found, lost
