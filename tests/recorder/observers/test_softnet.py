"""The observer of packet work, on a synthetic node of 96 cores and on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.sources.network.synthetic_ena import CORES, FIRST_IRQ, QUEUES, SyntheticHost
from tests.waiting import wait_for

from nodescope.errors import SourceAbsent
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.softnet import make
from nodescope.records.event import Event
from nodescope.records.event_details import StarvedCoreDetails
from nodescope.records.node_tables import InterruptRow, SoftnetRow
from nodescope.sources.places import Places

HERE = Path(__file__).parents[1]


class Second:
    """Observes a synthetic host once a second."""

    def __init__(self, host: SyntheticHost) -> None:
        self.host = host
        self.observer = make(Setting(Places(root=host.root), host.root))
        self.now_ns = 50 * SECOND_NS

    def next(self, held: int | None = None) -> Observation:
        self.now_ns += SECOND_NS
        self.host.pass_time(held=held)
        self.host.write()
        return self.observer.observe(self.now_ns)


@pytest.fixture(params=["5.10", "4.14"])
def second(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Second]:
    """4.14 tells no backlog and has no file for each interrupt that we could read."""
    old = request.param == "4.14"
    node = Second(SyntheticHost(tmp_path, columns=11 if old else 13, per_irq=not old))
    yield node
    node.observer.close()


def test_whole_at_first_then_what_moved(second: Second) -> None:
    first = second.next()
    assert len(first.rows_of(SoftnetRow)) == CORES
    assert len(first.rows_of(InterruptRow)) == QUEUES  # those that came at all
    assert second.next().empty
    second.host.serve(13, times=4)
    said = second.next()
    (row,) = said.rows_of(SoftnetRow)
    assert (row.cpu, row.net_rx, row.starved_ns) == (39, 504, 0)
    assert said.rows_of(InterruptRow) == [
        InterruptRow(time_ns=second.now_ns, irq=FIRST_IRQ + 14, cpu=39, count=10_004)
    ]
    second.observer.begin_segment()
    again = second.next()
    assert len(again.rows_of(SoftnetRow)) == CORES
    assert len(again.rows_of(InterruptRow)) == QUEUES


def test_a_held_core_is_starved_and_no_other(second: Second) -> None:
    events: list[Event] = []
    for _ in range(3):
        for queue in range(QUEUES):
            second.host.serve(queue)
        events += second.next().events
    held = second.host.core_of(13)
    starved: dict[int, int] = {}
    for _ in range(6):
        for queue in set(range(QUEUES)) - {13, 14}:  # the queue of core 42 has no traffic
            second.host.serve(queue)
        said = second.next(held=held)
        events += said.events
        starved |= {row.cpu: row.starved_ns or 0 for row in said.rows_of(SoftnetRow)}
    starved = {cpu: ns for cpu, ns in starved.items() if ns}
    assert starved == {39: 5 * SECOND_NS}
    second.host.serve(13)
    events += second.next().events
    (event,) = events
    assert (event.kind, event.subject, event.cpu) == ("core_starved", "cpu39", 39)
    assert event.get(StarvedCoreDetails).evidence == ("silence",)
    assert event.get(StarvedCoreDetails).seconds == 5.0


def test_idle_cores_of_a_quiet_device_are_well(second: Second) -> None:
    events: list[Event] = []
    for _ in range(12):
        second.host.serve(5)
        events += second.next().events
    for _ in range(12):
        events += second.next().events
    assert events == []


def test_a_backlog_is_told_where_the_kernel_tells_it(tmp_path: Path) -> None:
    second = Second(SyntheticHost(tmp_path))
    second.next()
    second.host.backlog[7] = 12
    rows = second.next().rows_of(SoftnetRow)
    assert [(row.cpu, row.backlog) for row in rows] == [(7, 12)]
    second.next()
    second.next()
    second.host.backlog[7] = 0
    second.host.processed[7] += 12
    (event,) = second.next().events
    assert event.message == "core 7 served no packets for 2.0 s: up to 12 packets lay in its queue"
    second.observer.close()


def test_a_device_that_gets_other_interrupts_is_found_again(tmp_path: Path) -> None:
    second = Second(SyntheticHost(tmp_path))
    second.next()
    host = second.host
    moved = host.irqs.pop(FIRST_IRQ + 1)
    (tmp_path / f"sys/kernel/irq/{FIRST_IRQ + 1}/per_cpu_count").unlink()
    (tmp_path / f"sys/devices/pci0000:20/0000:20:03.0/msi_irqs/{FIRST_IRQ + 1}").unlink()
    host.irqs[FIRST_IRQ + 40] = moved
    (tmp_path / f"sys/devices/pci0000:20/0000:20:03.0/msi_irqs/{FIRST_IRQ + 40}").touch()
    second.now_ns += 60 * SECOND_NS
    second.next()
    moved[2] += 1
    rows = second.next().rows_of(InterruptRow)
    assert [(row.irq, row.cpu) for row in rows] == [(FIRST_IRQ + 40, 2)]
    second.observer.close()


def test_cores_are_told_of_where_devices_are_not_to_be_seen(tmp_path: Path) -> None:
    host = SyntheticHost(tmp_path)
    (tmp_path / "sys").rename(tmp_path / "hidden")
    observer = make(Setting(Places(root=host.root), host.root))
    said = observer.observe(SECOND_NS)
    assert {type(row) for row in said.rows} == {SoftnetRow}
    observer.close()


def test_a_node_without_the_files_is_not_a_failure(tmp_path: Path) -> None:
    observer = make(Setting(Places(root=tmp_path), tmp_path))
    with pytest.raises(SourceAbsent):
        observer.observe(SECOND_NS)
    observer.close()


# -- the real thing ---------------------------------------------------------------


@contextmanager
def _started(word: str, *command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A program that says `word` when it is at work; ended with the block."""
    with subprocess.Popen(
        [*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            said = process.stdout.readline()
            if said.startswith("impossible"):
                pytest.skip(said.strip())
            assert said.strip() == word
            process.stdin.write("again\n" * 100)  # for one that does its work when told to
            process.stdin.flush()
            yield process
        finally:
            process.kill()


@contextmanager
def _away_from(core: int) -> Iterator[None]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, allowed - {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _choose_core() -> int:
    """The one to be held; another has to be left to observe from."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores: one is held, the other observes")
    return cores[-1]


def _wait_for_starvation(tmp_path: Path, holder: subprocess.Popen[str]) -> list[Event]:
    """Observe every half second until a core starves, for as long as it is held."""
    observer = make(Setting(Places(), tmp_path))

    def starved() -> list[Event]:
        time.sleep(0.5)
        said = observer.observe(time.monotonic_ns())
        return [event for event in said.events if event.kind == "core_starved"]

    try:
        return wait_for(starved, "a core starves", 180, process=holder)
    finally:
        observer.close()


@pytest.mark.live
@pytest.mark.root
@pytest.mark.debian("util-linux")
def test_a_core_held_in_the_kernel_is_starved_of_its_packets_and_no_other(tmp_path: Path) -> None:
    held = _choose_core()
    with (
        _away_from(held),
        _started(
            "sending", "unshare", "--net", "--mount", sys.executable, "-m",
            "nodescope.lab.steered_traffic", str(held),
        ),
        _started(
            "ready", sys.executable, "-m", "nodescope.lab.held_core", str(held), "5"
        ) as holder,
    ):  # fmt: skip
        starved = _wait_for_starvation(tmp_path, holder)
    assert {event.cpu for event in starved} == {held}
    assert (starved[0].get(StarvedCoreDetails).seconds or 0) >= 1.9
    assert (starved[0].get(StarvedCoreDetails).backlog or 0) > 0


@pytest.mark.live
@pytest.mark.root
@pytest.mark.debian("iproute2", "util-linux")
def test_a_thread_that_serves_packets_is_held_up_by_a_real_time_task(tmp_path: Path) -> None:
    held = _choose_core()
    with (
        _away_from(held),
        _started(
            "sending", "unshare", "--net", "--mount", sys.executable,
            HERE / "threaded_traffic.py", str(held),
        ),
        _started("busy", sys.executable, HERE / "busy_core.py", str(held)) as holder,
    ):  # fmt: skip
        starved = _wait_for_starvation(tmp_path, holder)
    assert {event.cpu for event in starved} == {held}
    assert "thread" in (starved[0].get(StarvedCoreDetails).evidence or ())
    assert (starved[0].get(StarvedCoreDetails).threads or ("",))[0].startswith("napi/")
