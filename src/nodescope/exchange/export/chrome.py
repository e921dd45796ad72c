"""Chrome's trace format, which Perfetto reads too: one track per thread.

Samples become slices: a function is a slice as long as it stays on the stack from
one sample to the next. A thread that was not sampled for more than two and a half
periods was off the CPU in between, and its slices end. Slices at depth 0 carry the
number of their samples. Core times are counters, events are instants.

Times are microseconds since the start of the window; `otherData` says when it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import IO

import numpy as np

from nodescope.exchange.export.stacks import ChosenSamples, ExportedStacks, Parts, count, label
from nodescope.quantities import SECOND_NS
from nodescope.recording.part import Part
from nodescope.records.json import Json

_DEFAULT_PERIOD_NS = 10_000_000
_STATES = ("user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle")
TraceEvent = dict[str, Json]  # as the format has them: `ph` says which kind
_CORES_PID = 0  # the track group of counters; pid 0 is the idle task, never sampled


@dataclass
class _Open:
    """A slice that has not ended."""

    frame: int
    start_ns: int
    samples: int = 0


def write_chrome(
    parts: Parts,
    segments: Iterable[Part],
    file: IO[bytes],
    from_ns: int,
    to_ns: int,
    about: Mapping[str, object],
) -> int:
    """Write samples, core times and events; returns how many samples."""
    total = 0
    named: set[tuple[int, int]] = set()
    file.write(b'{"displayTimeUnit":"ms","otherData":')
    file.write(json.dumps(about).encode())
    file.write(b',"traceEvents":[\n')
    _put(file, _metadata("process_name", _CORES_PID, 0, "cores and events"), first=True)
    for part in parts:
        total += len(part.row)
        for event in _part_events(part, named, from_ns):
            _put(file, event)
    for segment in segments:
        for event in _core_events(segment, from_ns, to_ns):
            _put(file, event)
        for event in _instants(segment, from_ns, to_ns):
            _put(file, event)
    file.write(b"\n]}\n")
    return total


def _put(file: IO[bytes], event: TraceEvent, *, first: bool = False) -> None:
    if not first:
        file.write(b",\n")
    file.write(json.dumps(event, separators=(",", ":")).encode("utf-8", "backslashreplace"))


def _metadata(what: str, pid: int, tid: int, name: str) -> TraceEvent:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _micro(time_ns: int) -> float:
    return round(time_ns / 1000, 3)


def _part_events(
    part: ChosenSamples, named: set[tuple[int, int]], from_ns: int
) -> Iterator[TraceEvent]:
    stacks = ExportedStacks()
    (rows,), _ = count(part.row)
    paths = stacks.number_rows(part.columns, rows)
    names = [label(frame) for frame in stacks.frames]
    order = np.lexsort((part.time_ns, part.tid, part.pid))
    pids, tids = part.pid[order], part.tid[order]
    changed = (pids[1:] != pids[:-1]) | (tids[1:] != tids[:-1])
    bounds = [0, *(np.flatnonzero(changed) + 1).tolist(), len(order)] if len(order) else []
    period = part.period_ns or _DEFAULT_PERIOD_NS
    for start, end in pairwise(bounds):
        own = order[start:end]
        pid, tid = int(pids[start]), int(tids[start])
        if (pid, tid) not in named:
            named.add((pid, tid))
            comm = part.comm(int(part.row[own[-1]]))
            yield _metadata("thread_name", pid, tid, comm)
            if pid == tid:
                yield _metadata("process_name", pid, tid, comm)
        times = (part.time_ns[own] - from_ns).tolist()
        path_of = paths[part.row[own]].tolist()
        for name, slice_, end_ns in _slices(times, path_of, stacks, names, period):
            event: TraceEvent = {
                "ph": "X",
                "name": name,
                "pid": pid,
                "tid": tid,
                "ts": _micro(slice_.start_ns),
                "dur": _micro(end_ns - slice_.start_ns),
            }
            if slice_.samples:
                event["args"] = {"samples": slice_.samples}
            yield event


def _slices(
    times: list[int], path_of: list[int], stacks: ExportedStacks, names: list[str], period: int
) -> Iterator[tuple[str, _Open, int]]:
    """Slices of one thread, each when it ends."""
    going: list[_Open] = []
    last = 0
    for time, number in zip(times, path_of, strict=True):
        path = stacks.paths[number]
        kept = 0
        if going and time - last <= period * 5 // 2:
            end = time
            while kept < min(len(going), len(path)) and going[kept].frame == path[kept]:
                kept += 1
        else:
            end = min(time, last + period)
        while len(going) > kept:
            slice_ = going.pop()
            yield names[slice_.frame], slice_, end
        going += [_Open(frame, time) for frame in path[kept:]]
        going[0].samples += 1
        last = time
    while going:
        slice_ = going.pop()
        yield names[slice_.frame], slice_, last + period


def _core_events(segment: Part, from_ns: int, to_ns: int) -> Iterator[TraceEvent]:
    table = segment.read("cores", ["cpu", "time_ns", *_STATES])
    if len(table) < 2:
        return
    cpu = table.column("cpu").to_numpy()
    time = segment.wall_ns(table.column("time_ns").to_numpy())
    ticks = np.stack([table.column(state).to_numpy() for state in _STATES], axis=1)
    used = np.diff(ticks, axis=0)
    whole = used.sum(axis=1)
    sound = (np.diff(cpu) == 0) & (used >= 0).all(axis=1) & (whole > 0)
    sound &= (time[:-1] >= from_ns) & (time[1:] <= to_ns + SECOND_NS)
    for row in np.flatnonzero(sound).tolist():
        shares = (100 * used[row] / whole[row]).round(1).tolist()
        yield {
            "ph": "C",
            "name": f"cpu {cpu[row]} %",
            "pid": _CORES_PID,
            "ts": _micro(int(time[row]) - from_ns),
            "args": dict(zip(_STATES[:-1], shares, strict=False)),
        }


def _instants(segment: Part, from_ns: int, to_ns: int) -> Iterator[TraceEvent]:
    for row in segment.read("events").to_pylist():
        time = int(segment.wall_ns(row["time_ns"]))
        if from_ns <= time < to_ns:
            yield {
                "ph": "i",
                "s": "g",
                "name": row["message"] or row["kind"],
                "cat": row["kind"],
                "pid": _CORES_PID,
                "tid": 0,
                "ts": _micro(time - from_ns),
                "args": {"kind": row["kind"], "subject": row["subject"]},
            }
