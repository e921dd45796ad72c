"""Network devices right now, without a recording: what the observers say, a few times."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nodescope.analysis.counters import Array
from nodescope.analysis.network import Network, derive_network
from nodescope.errors import SourceAbsent
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Observer, Setting
from nodescope.recorder.observers import nics, softnet
from nodescope.recording.window import Window
from nodescope.records import TABLES
from nodescope.records.event import Event
from nodescope.sources.places import Places


class _Said:
    """The rows that observers said, as the tables of a segment."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Mapping[str, Any]]] = {}

    def columns(self, table: str, names: Sequence[str]) -> Mapping[str, Array]:
        order = TABLES[table].order
        rows = sorted(self.rows.get(table, []), key=lambda row: [row[name] for name in order])
        return {name: _array([row.get(name) for row in rows]) for name in names}


def _array(values: list[Any]) -> Array:
    """As a segment would give it: numbers with NaN for null, or objects."""
    if all(value is None or type(value) is int for value in values):
        whole = None not in values
        return np.array(values, np.int64 if whole else np.float64)
    return np.array(values, object)


def observe_network(places: Places, length_ns: int) -> Network:
    """Look each second for as long as asked, and once more at the end."""
    setting = Setting(places, Path())
    observers: list[Observer] = [softnet.make(setting), nics.make(setting)]
    said = _Said()
    events: list[Event] = []
    started = time.monotonic_ns()
    offset = time.time_ns() - started
    try:
        while True:
            now = time.monotonic_ns()
            for observer in observers:
                _ask(observer, now + offset, said, events)
            left = started + length_ns - now
            if left <= 0:
                break
            time.sleep(min(left, SECOND_NS) / SECOND_NS)
    finally:
        for observer in observers:
            observer.close()
    window = Window(started + offset, time.monotonic_ns() + offset + 1)
    return derive_network([said], events, window)


def _ask(observer: Observer, now_ns: int, said: _Said, events: list[Event]) -> None:
    try:
        observer.begin_segment()
        answer = observer.observe(now_ns)
    except SourceAbsent:  # a node without network devices has cores all the same
        return
    for table, rows in answer.rows.items():
        said.rows.setdefault(table, []).extend(rows)
    events.extend(answer.events)
