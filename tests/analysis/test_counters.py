"""How far counters rose in a window, over segments and new starts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodescope.analysis.counters import Counters, groups
from nodescope.recording.memory import recording_of
from nodescope.recording.window import Window
from nodescope.records.node_tables import NicQueueRow, NicRow, NicStatisticRow

Told = tuple[int, str, int | None]


def rise(window: Window, *parts: Sequence[Told]) -> dict[str, int | None]:
    counters = Counters(NicStatisticRow, window)
    for part in parts:
        rows = [
            NicStatisticRow(time_ns=at, nic="eth0", name=name, value=value)
            for at, name, value in part
        ]
        counters.add(recording_of(rows).parts[0])
    return {row.name: row.value for row in counters.rises()}


def test_what_rose_in_the_window_alone() -> None:
    rows = [(10, "a", 5), (20, "a", 7), (30, "a", 17), (40, "a", 117), (10, "b", 1)]
    assert rise(Window(15, 35), rows) == {"a": 12, "b": 0}


def test_a_segment_goes_on_where_the_one_before_ended() -> None:
    first, second = [(10, "a", 5), (20, "a", 7)], [(30, "a", 9), (40, "a", 10)]
    assert rise(Window(15, 99), first, second) == {"a": 5}
    assert rise(Window(25, 99), second) == {"a": 1}


def test_a_counter_that_starts_anew_counts_from_there() -> None:
    assert rise(Window(0, 99), [(1, "a", 100), (2, "a", 3), (3, "a", 8)]) == {"a": 5}


def test_what_is_not_known_is_not_zero() -> None:
    rows = [(1, "a", None), (2, "a", None), (1, "b", None), (2, "b", 4), (3, "b", 6)]
    assert rise(Window(0, 99), rows) == {"b": 2}


def test_a_part_without_the_table_has_nothing() -> None:
    counters = Counters(NicStatisticRow, Window(0, 99))
    counters.add(recording_of([NicRow(time_ns=1, nic="eth0")]).parts[0])
    assert list(counters.rises()) == []


def test_only_counters_are_replaced_by_their_rises() -> None:
    # as of a node whose only device is virtual: no driver, no version, no bus
    rows = [
        NicRow(time_ns=at, nic="veth0", rx_queues=4, rx_packets=at, carrier_changes=7)
        for at in (10, 20)
    ]
    counters = Counters(NicRow, Window(0, 99))
    counters.add(recording_of(rows).parts[0])
    risen = counters.risen(rows[-1])
    assert (risen.rx_packets, risen.carrier_changes, risen.tx_packets) == (10, 0, None)
    assert (risen.nic, risen.driver, risen.rx_queues, risen.time_ns) == ("veth0", None, 4, 20)


def test_subjects_with_unknown_parts_are_told_apart() -> None:
    rows = [
        NicQueueRow(time_ns=at, nic="eth0", queue=0, irq=irq, tx_timeouts=base + at)
        for at in (1, 2)
        for irq, base in ((None, 0), (38, 100))
    ]
    counters = Counters(NicQueueRow, Window(0, 99))
    counters.add(recording_of(rows).parts[0])
    assert {(row.irq, row.tx_timeouts) for row in counters.rises()} == {(None, 1), (38, 1)}


def test_runs_of_equal_keys() -> None:
    names = np.array(["x", "x", None], object)
    assert list(groups([np.array([1, 1, 1]), names])) == [((1, "x"), 0, 2), ((1, None), 2, 3)]
    assert list(groups([np.array([])])) == []
