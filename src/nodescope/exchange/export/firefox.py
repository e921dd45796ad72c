"""Firefox Profiler: its processed format, version 48, which the site upgrades on opening.

(github.com/firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md.) The busiest
threads are tracks of their own; all others are merged into one track per thread name, so
that a node with thousands of short-lived processes can still be opened.

A track needs its samples in order of time, so the window's samples are held: 40 bytes each.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO

import numpy as np

from nodescope.arrays import I64
from nodescope.exchange.export.stacks import ExportedStacks, Parts, count, label
from nodescope.quantities import SECOND_NS
from nodescope.records.json import Json

VERSION = 48
_MOST_THREADS = 200
_USER, _KERNEL = 0, 1
_CATEGORIES = [
    {"name": "User", "color": "yellow", "subcategories": ["Other"]},
    {"name": "Kernel", "color": "orange", "subcategories": ["Other"]},
]


@dataclass
class _Held:
    """Samples of the window: which thread, when, on which path."""

    pid: list[I64] = field(default_factory=list)
    tid: list[I64] = field(default_factory=list)
    time: list[I64] = field(default_factory=list)
    path: list[I64] = field(default_factory=list)
    comm: list[I64] = field(default_factory=list)
    comms: dict[str, int] = field(default_factory=dict)


def write_firefox(parts: Parts, file: IO[bytes], from_ns: int, product: str) -> int:
    """Write all samples; returns how many."""
    stacks, held = ExportedStacks(), _Held()
    period = 0
    for part in parts:
        period = part.period_ns or period
        (rows,), _ = count(part.row)
        comm_of = np.full(len(part.columns.profile_stack), -1, np.int64)
        comm_of[rows] = [
            held.comms.setdefault(part.comm(row), len(held.comms)) for row in rows.tolist()
        ]
        held.pid.append(part.pid)
        held.tid.append(part.tid)
        held.time.append(part.time_ns)
        held.path.append(stacks.number_rows(part.columns, rows)[part.row])
        held.comm.append(comm_of[part.row])
    columns = {
        name: np.concatenate(getattr(held, name) or [np.empty(0, np.int64)])
        for name in ("pid", "tid", "time", "path", "comm")
    }
    comms = list(held.comms)
    interval = (period or SECOND_NS // 100) / 1e6
    meta = {
        "interval": interval,
        "startTime": from_ns / 1e6,
        "processType": 0,
        "product": product,
        "stackwalk": 1,
        "version": 29,
        "preprocessedProfileVersion": VERSION,
        "categories": _CATEGORIES,
        "markerSchema": [],
        "platform": "Linux",
        "oscpu": "Linux",
        "symbolicationNotSupported": True,
        "importedFrom": "nodescope",
    }
    file.write(f'{{"meta":{json.dumps(meta)},"libs":[],"pages":[],"threads":['.encode())
    for number, thread in enumerate(_threads(columns, comms)):
        file.write(b"," if number else b"")
        document = _thread(thread, columns, stacks, from_ns)
        text = json.dumps(document, separators=(",", ":"))
        file.write(text.encode("utf-8", "backslashreplace"))
    file.write(b"]}\n")
    return len(columns["pid"])


@dataclass(frozen=True)
class _Thread:
    name: str
    pid: int | str
    tid: int | str
    main: bool
    samples: I64  # row numbers, in order of time


def _threads(columns: dict[str, I64], comms: list[str]) -> list[_Thread]:
    pid, tid, comm = columns["pid"], columns["tid"], columns["comm"]
    threads, sizes = count(pid, tid)
    order = np.argsort(-sizes, kind="stable")[:_MOST_THREADS].tolist()
    by_time = np.argsort(columns["time"], kind="stable")
    track = np.full(len(pid), -1, np.int64)
    # Which track a sample belongs to: its thread's, or else its comm's.
    keys = {(int(threads[0][at]), int(threads[1][at])): rank for rank, at in enumerate(order)}
    if len(pid):
        unique, inverse = np.unique((pid << 32) ^ (tid & 0xFFFFFFFF), return_inverse=True)
        first = np.zeros(len(unique), np.int64)
        first[inverse] = np.arange(len(pid))
        ranks = [keys.get((int(pid[at]), int(tid[at])), -1) for at in first.tolist()]
        track = np.array(ranks, np.int64)[inverse]
        track = np.where(track < 0, len(order) + comm, track)
    grouped = by_time[np.argsort(track[by_time], kind="stable")]
    bounds = np.flatnonzero(np.diff(track[grouped], prepend=-1, append=-2)).tolist()
    result = []
    for start, end in pairwise(bounds):
        rows = grouped[start:end]
        number = int(track[rows[0]])
        own = Counter(comm[rows].tolist()).most_common(1)[0][0]
        name = comms[own]
        if number < len(order):
            main = bool(pid[rows[0]] == tid[rows[0]])
            result.append(_Thread(name, int(pid[rows[0]]), int(tid[rows[0]]), main, rows))
        else:
            result.append(_Thread(f"{name} (others)", "others", number, True, rows))
    return result


class _Tables:
    """A track's own tables, numbered as its stacks are met."""

    def __init__(self, stacks: ExportedStacks) -> None:
        self._stacks = stacks
        self.strings: dict[str, int] = {}
        self.functions: dict[int, int] = {}  # by frame
        self.resources: dict[str, int] = {}
        self.function_rows: list[tuple[int, int]] = []  # name, resource
        self.categories: list[int] = []  # by function
        self.stack_rows: dict[tuple[int, int], int] = {}  # caller (-1 none) and function
        self._paths: dict[int, int] = {}

    def stack(self, path: int) -> int:
        known = self._paths.get(path)
        if known is None:
            known = -1
            for frame in self._stacks.paths[path]:
                key = (known, self._function(frame))
                known = self.stack_rows.setdefault(key, len(self.stack_rows))
            self._paths[path] = known
        return known

    def _function(self, frame: int) -> int:
        number = self.functions.get(frame)
        if number is None:
            number = self.functions[frame] = len(self.functions)
            module, _, kernel = self._stacks.frames[frame]
            resource = self.resources.setdefault(module, len(self.resources))
            name = self._string(label(self._stacks.frames[frame]))
            self.function_rows.append((name, resource))
            self.categories.append(_KERNEL if kernel else _USER)
        return number

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def document(self) -> dict[str, Json]:
        functions, rows = len(self.function_rows), list(self.stack_rows)
        resources = [self._string(module.rpartition("/")[2]) for module in self.resources]
        nothing: list[None] = [None] * functions
        zeros = [0] * functions
        return {
            "stackTable": {
                "length": len(rows),
                "prefix": [None if caller < 0 else caller for caller, _ in rows],
                "frame": [function for _, function in rows],
                "category": [self.categories[function] for _, function in rows],
                "subcategory": [0] * len(rows),
            },
            "frameTable": {
                "length": functions,
                "address": [-1] * functions,
                "inlineDepth": zeros,
                "category": self.categories,
                "subcategory": zeros,
                "func": list(range(functions)),
                "nativeSymbol": nothing,
                "innerWindowID": nothing,
                "implementation": nothing,
                "line": nothing,
                "column": nothing,
            },
            "funcTable": {
                "length": functions,
                "isJS": [False] * functions,
                "relevantForJS": [False] * functions,
                "name": [name for name, _ in self.function_rows],
                "resource": [resource for _, resource in self.function_rows],
                "fileName": nothing,
                "lineNumber": nothing,
                "columnNumber": nothing,
            },
            "resourceTable": {
                "length": len(resources),
                "lib": [None] * len(resources),
                "name": resources,
                "host": [None] * len(resources),
                "type": [1] * len(resources),
            },
            "nativeSymbols": {
                "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [],
            },
            "stringArray": list(self.strings),
        }  # fmt: skip


def _thread(
    thread: _Thread, columns: dict[str, I64], stacks: ExportedStacks, from_ns: int
) -> dict[str, Json]:
    tables = _Tables(stacks)
    times = ((columns["time"][thread.samples] - from_ns) / 1e6).round(3).tolist()
    return {
        "name": thread.name,
        "isMainThread": thread.main,
        "processType": "default",
        "processName": thread.name,
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "pid": str(thread.pid),
        "tid": thread.tid,
        "samples": {
            "length": len(times),
            "stack": [tables.stack(path) for path in columns["path"][thread.samples].tolist()],
            "time": times,
            "weight": None,
            "weightType": "samples",
        },
        "markers": {
            "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [],
            "startTime": [],
        },
        **tables.document(),
    }  # fmt: skip
