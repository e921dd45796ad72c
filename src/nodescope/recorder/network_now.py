"""Network devices right now, without an archive: a few looks, recorded in memory."""

from __future__ import annotations

import time
from pathlib import Path

from nodescope.analysis.network import Network, derive_network
from nodescope.clock import SystemClock, read_pair
from nodescope.errors import SourceAbsent
from nodescope.ingest.event_rows import event_rows
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Observer, Setting
from nodescope.recorder.observers import nics, softnet
from nodescope.recording.memory import MemoryWriter
from nodescope.recording.window import Window
from nodescope.records.columns import columns_by_table, columns_of
from nodescope.records.recorder_tables import HeartbeatRow
from nodescope.sources.places import Places


def observe_network(places: Places, length_ns: int) -> Network:
    """Look each second for as long as asked, and once more at the end."""
    setting = Setting(places, Path())
    observers: list[Observer] = [softnet.make(setting), nics.make(setting)]
    clock = SystemClock()
    writer = MemoryWriter({}, clock, tick_ns=1)
    first = last = read_pair(clock)
    try:
        while True:
            now = last.monotonic_ns
            heartbeat = HeartbeatRow(time_ns=now, wall_ns=last.wall_ns)
            writer.append("heartbeats", columns_of([heartbeat]))
            for observer in observers:
                _ask(observer, now, writer)
            left = first.monotonic_ns + length_ns - now
            if left <= 0:
                break
            time.sleep(min(left, SECOND_NS) / SECOND_NS)
            last = read_pair(clock)
    finally:
        for observer in observers:
            observer.close()
    window = Window(first.wall_ns, read_pair(clock).wall_ns + 1)
    return derive_network(writer.finish(), window)


def _ask(observer: Observer, now_ns: int, writer: MemoryWriter) -> None:
    try:
        observer.begin_segment()
        answer = observer.observe(now_ns)
    except SourceAbsent:  # a node without network devices has cores all the same
        return
    for table, columns in columns_by_table([*answer.rows, *event_rows(answer.events)]).items():
        writer.append(table, columns)
