from __future__ import annotations

import struct

from nodescope.sources.cgroups.announced import Announced, Born, Renamed, parse_announced

LATER = 1 << 60


def _record(kind: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body


def _renamed(pid: int, name: str, time_ns: int, tid: int | None = None) -> bytes:
    tid = pid if tid is None else tid
    padded = name.encode().ljust(8 if len(name) < 8 else 16, b"\0")
    return _record(
        3, struct.pack("<II", pid, tid) + padded + struct.pack("<IIQ", pid, tid, time_ns)
    )


def _born(pid: int, parent: int, time_ns: int, tid: int | None = None) -> bytes:
    tid = pid if tid is None else tid
    times = struct.pack("<QIIQ", time_ns, parent, parent, time_ns)
    return _record(7, struct.pack("<IIII", pid, parent, tid, parent) + times)


def _ended(pid: int, time_ns: int) -> bytes:
    return _record(4, struct.pack("<IIIIQIIQ", pid, 1, pid, 1, time_ns, pid, pid, time_ns))


def test_of_those_wanted_every_record_is_told_of_others_the_last() -> None:
    here = _renamed(5, "runc", 10) + _renamed(6, "sh", 20) + _renamed(5, "runc:[2:INIT]", 40)
    there = _renamed(6, "a-name-of-15-by", 30) + _ended(5, 50)
    assert parse_announced([here, there], {5}, LATER) == Announced(
        [Renamed(10, 5, "runc"), Renamed(40, 5, "runc:[2:INIT]")], {6: b"a-name-of-15-by"}
    )


def test_names_are_by_time_not_by_the_ring_they_came_from() -> None:
    assert parse_announced([_renamed(6, "new", 9), _renamed(6, "old", 3)], {}, LATER).names == {
        6: b"new"
    }


def test_the_forebears_of_those_wanted_are_wanted() -> None:
    data = _born(7, 6, 30) + _born(6, 5, 20) + _born(5, 1, 10) + _born(9, 8, 15)
    found = parse_announced([data], {7}, LATER)
    assert sorted(found.records) == [Born(10, 5, 1), Born(20, 6, 5), Born(30, 7, 6)]
    assert found.parents == {9: 8}


def test_threads_are_passed_over() -> None:
    data = _renamed(5, "worker", 1, tid=6) + _born(5, 4, 2, tid=6)
    assert parse_announced([data], {5, 6}, LATER) == Announced()


def test_what_is_not_for_this_time_comes_one_by_one() -> None:
    data = _renamed(5, "old", 1) + _renamed(5, "new", 8) + _born(6, 5, 9)
    assert parse_announced([data], {}, 8) == Announced(
        [Born(9, 6, 5), Renamed(8, 5, "new")], {5: b"old"}
    )


def test_nothing_is_announced_by_nothing() -> None:
    assert parse_announced([], {5}, LATER) == Announced()
