"""The observer of limits, on files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernel_files import write

from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.limits import LimitsObserver
from nodescope.records.event import Event
from nodescope.records.event_details import CounterDetails
from nodescope.records.trouble_details import FullTableDetails, StorageDetails
from nodescope.records.witness_tables import LimitRow, TroubleCountRow
from nodescope.sources.limits.clock_state import ClockState
from nodescope.sources.places import Places

CONNTRACK = "entries insert_failed drop early_drop\n00000001 00000000 {drop:08x} {early:08x}\n"


class Node:
    """A node whose files change, looked at every five seconds."""

    def __init__(self, root: Path) -> None:
        self.proc, self.sys = root / "proc", root / "sys"
        self.setting = Setting(Places(root), root / "none")
        self.observer = LimitsObserver(self.setting)
        self.now_ns = 0
        self.rows: list[tuple[str, int | None]] = []
        self.disk("sda", waiting=0, completed=1)

    def disk(self, name: str, *, waiting: int, completed: int) -> None:
        write(self.sys / "block" / name, {})
        line = f"8 0 {name} {completed} 0 0 0 0 0 0 0 {waiting} 0 0\n"
        write(self.proc, {"diskstats": line})

    def files(self, used: int, most: int = 1000) -> None:
        write(self.proc / "sys/fs", {"file-nr": f"{used}\t0\t{most}\n"})

    def conntrack(self, *, used: int, drop: int, early: int = 0) -> None:
        numbers = {"nf_conntrack_count": f"{used}\n", "nf_conntrack_max": "100\n"}
        write(self.proc / "sys/net/netfilter", numbers)
        write(self.proc / "net/stat", {"nf_conntrack": CONNTRACK.format(drop=drop, early=early)})

    def look(self, seconds: int = 10) -> list[Event]:
        events: list[Event] = []
        for _ in range(seconds // 5):
            self.now_ns += 5 * SECOND_NS
            said = self.observer.observe(self.now_ns)
            events += said.events
            self.rows = [(row.name, row.used) for row in said.rows_of(LimitRow)]
            self.rows += [(row.name, row.value) for row in said.rows_of(TroubleCountRow)]
        return events


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(
        "nodescope.recorder.observers.limits.read_clock_state", lambda: ClockState(True, 1)
    )
    return Node(tmp_path)


def test_files_that_run_out_are_one_event_until_they_are_free_again(node: Node) -> None:
    node.files(500)
    assert node.look() == []
    node.files(960)
    (event,) = node.look()
    assert event.kind == "files_exhausted"
    assert event.message == "960 of 1,000 open files are in use"
    details = event.get(FullTableDetails)
    assert (details.limit, details.scope, details.used, details.most) == (
        "files",
        "node",
        960,
        1000,
    )
    for used, number in ((990, 0), (930, 0), (960, 0), (700, 0), (960, 1)):
        node.files(used)
        assert len(node.look()) == number, used


def test_a_busy_machine_below_its_limits_is_silent(node: Node) -> None:
    node.files(900)
    node.conntrack(used=94, drop=0)
    write(node.proc, {"loadavg": "500 400 300 480/900 26455\n"})
    write(node.proc / "sys/kernel", {"pid_max": "1000\n", "threads-max": "4000\n"})
    for completed in range(20):
        node.disk("sda", waiting=64, completed=completed)
        assert node.look(5) == []


def test_a_counter_of_the_kernel_is_an_event_where_the_log_is_silent(node: Node) -> None:
    write(node.sys / "kernel", {"oops_count": "1\n", "softlockup_count": "0\n"})
    node.setting.log_reports.note_read(0)
    node.look()
    assert node.look(5) == []
    write(node.sys / "kernel", {"oops_count": "2\n", "softlockup_count": "3\n"})
    node.setting.log_reports.tell(node.now_ns, "soft_lockup", ("cpu3",))
    (event,) = node.look(20)
    assert (event.kind, event.subject) == ("kernel_oops", "kernel")
    details = event.get(CounterDetails)
    assert (details.statistic, details.before, details.value) == ("oops_count", 1, 2)
    assert details.known_from == "counters"


@pytest.mark.parametrize(
    ("used", "drop", "early", "reported"),
    [
        (100, 5, 0, True),  # full, and packets are dropped
        (50, 5, 7, True),  # it was full in between
        (50, 500, 0, True),
        (50, 5, 0, False),  # bad packets
        (100, 0, 9, False),  # full, and others made room
    ],
)
def test_packets_dropped_by_a_full_table(
    node: Node, used: int, drop: int, early: int, reported: bool
) -> None:
    node.conntrack(used=50, drop=0)
    node.look()
    node.conntrack(used=used, drop=drop, early=early)
    events = node.look()
    assert [event.kind for event in events] == ["conntrack_full"] * reported
    if reported:
        assert events[0].get(FullTableDetails).most == 100


def test_a_disk_that_does_not_answer(node: Node) -> None:
    node.look()
    node.disk("sda", waiting=7, completed=1)
    assert node.look(10) == []
    (event,) = node.look(20)
    assert (event.kind, event.subject) == ("io_stalled", "sda")
    details = event.get(StorageDetails)
    assert (details.device, details.waiting, details.seconds) == ("sda", 7, 10.0)
    assert details.known_from == "counters"


def test_a_partition_and_a_drive_without_a_medium_are_not_asked(node: Node) -> None:
    node.disk("sr0", waiting=1, completed=1)
    assert node.look(30) == []
    line = "8 1 sda1 1 0 0 0 0 0 0 0 3 0 0\n"  # no folder of its own below /sys/block
    write(node.proc, {"diskstats": line})
    assert node.look(30) == []


def test_rows_where_something_changed_and_all_in_a_new_segment(node: Node) -> None:
    node.files(500)
    write(node.sys / "kernel", {"oops_count": "1\n"})
    node.look(5)
    assert node.rows == [("files", 500), ("oops_count", 1)]
    node.files(501)
    node.look(10)
    assert node.rows == []
    node.observer.begin_segment()
    node.look(5)
    assert node.rows == [("files", 501), ("oops_count", 1)]
    node.observer.close()


def test_a_clock_that_lost_its_source(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.look()
    monkeypatch.setattr(
        "nodescope.recorder.observers.limits.read_clock_state", lambda: ClockState(False, 1)
    )
    assert [event.kind for event in node.look()] == ["clock_unsynchronized"]


def test_a_file_that_is_refused_is_named(node: Node) -> None:
    (node.proc / "sys/fs/file-nr").mkdir(parents=True)  # it opens, and cannot be read
    (event,) = node.look(20)
    assert event.kind == "source_degraded"
    assert "file-nr" in event.message
