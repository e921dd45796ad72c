"""The observer of network devices, on a synthetic ENA host and on recorded and real machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sources.network.synthetic_ena import (
    BUS,
    FIRST_IRQ,
    QUEUES,
    SyntheticEthtool,
    SyntheticHost,
)

from nodescope.diagnosis.symptoms.incidents import NIC_KINDS
from nodescope.errors import SourceAbsent
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.nics import NicsObserver, make
from nodescope.records.event import Event
from nodescope.records.event_details import NicDetails
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.node_tables import NicQueueRow, NicRow, NicStatisticRow
from nodescope.sources.network.ethtool import DriverInfo
from nodescope.sources.network.nics import list_nics
from nodescope.sources.places import Places

NIC = "sys/class/net/ens5"
RESETS = ("nic_tx_timeout", "nic_reset", "nic_poll_starved", "nic_keepalive_lost")


class Host:
    """A synthetic host, looked at every ten seconds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        SyntheticHost(root)
        self.ethtool = SyntheticEthtool()
        self.setting = Setting(Places(root=root), root)
        self.observer = NicsObserver(self.setting, self.ethtool)
        self.now_ns = 50 * SECOND_NS

    def next(self) -> Observation:
        self.now_ns += 10 * SECOND_NS
        return self.observer.observe(self.now_ns)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text + "\n")

    def events(self) -> list[Event]:
        return self.next().events


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.observer.close()


def test_whole_at_first_then_what_changed(host: Host) -> None:
    first = host.next()
    (nic,) = first.rows_of(NicRow)
    assert (nic.nic, nic.driver, nic.version) == ("ens5", "ena", "2.10.0g")
    assert (nic.rx_queues, nic.tx_queues, nic.tx_timeouts) == (QUEUES, QUEUES, 0)
    queues = first.rows_of(NicQueueRow)
    assert len(queues) == QUEUES
    assert NicQueueRow(
        time_ns=host.now_ns, nic="ens5", queue=13, direction="rx+tx", irq=FIRST_IRQ + 14,
        irq_name="eth0-Tx-Rx-13", affinity="0-95", effective="39", tx_timeouts=0,
    ) in queues  # fmt: skip
    assert len(first.rows_of(NicStatisticRow)) == len(host.ethtool.values)
    assert host.next().empty
    host.observer.begin_segment()
    again = host.next()
    assert Counter(map(type, again.rows)) == Counter(map(type, first.rows))


def test_trouble_is_told_at_once_and_the_rest_once_a_minute(host: Host) -> None:
    host.next()
    host.ethtool.values["queue_3_tx_cnt"] += 100
    host.ethtool.values["queue_3_rx_page_alloc_fail"] += 1
    rows = host.next().rows_of(NicStatisticRow)
    assert [(row.name, row.value) for row in rows] == [("queue_3_rx_page_alloc_fail", 1)]
    told: list[object] = []
    for _ in range(7):
        host.ethtool.values["queue_3_tx_cnt"] += 1
        told += [row.name for row in host.next().rows_of(NicStatisticRow)]
    assert told == ["queue_3_tx_cnt"]


def test_a_rise_of_a_counter_of_trouble_is_one_event(host: Host) -> None:
    host.next()
    host.ethtool.values["queue_5_tx_missed_tx"] += 2
    host.ethtool.values["queue_6_tx_missed_tx"] += 3
    host.ethtool.values["pps_allowance_exceeded"] += 1
    events = {event.get(NicDetails).statistic: event for event in host.events()}
    assert set(events) == {"tx_missed_tx", "pps_allowance_exceeded"}
    assert events["tx_missed_tx"].get(NicDetails).rise == 5
    assert events["tx_missed_tx"].kind == "nic_stat_jump"
    # It goes on rising: still the same trouble.
    for _ in range(5):
        host.ethtool.values["queue_5_tx_missed_tx"] += 1
        assert host.events() == []
    for _ in range(6):
        assert host.events() == []
    host.ethtool.values["queue_5_tx_missed_tx"] += 1
    assert len(host.events()) == 1


def test_a_transmit_timeout_is_seen_by_queue_even_if_the_driver_counts_nothing(host: Host) -> None:
    host.next()
    host.write(f"{NIC}/queues/tx-13/tx_timeout", "1")
    said = host.next()
    (event,) = said.events
    assert event.message == "tx_timeout rose by 1: counted, and not in the kernel's log"
    assert (event.kind, event.subject) == ("nic_tx_timeout", "ens5")
    assert event.get(NicDetails).queue == 13
    (queue,) = said.rows_of(NicQueueRow)
    assert (queue.queue, queue.tx_timeouts) == (13, 1)
    assert said.rows_of(NicRow)[0].tx_timeouts == 1


def test_what_is_counted_and_not_logged_is_told_as_the_log_would(host: Host) -> None:
    host.next()
    for name in ("tx_timeout", "total_resets", "suspected_poll_starvation", "wd_expired"):
        host.ethtool.values[name] += 1
    host.write(f"{NIC}/queues/tx-13/tx_timeout", "1")  # the kernel counts the same: told once
    events = {event.kind: event for event in host.events()}
    assert set(events) == set(RESETS)
    assert all(EVENT_KINDS[kind].serious for kind in events)
    assert set(events) <= set(NIC_KINDS)  # as the diagnosis looks for them
    reset = events["nic_reset"]
    assert (reset.subject, reset.details.to_json()) == ("ens5", {
        "statistic": "total_resets", "before": 0, "value": 1, "rise": 1, "known_from": "counters",
        "within_s": 10.0, "driver": "ena", "version": "2.10.0g", "interface": "ens5",
    })  # fmt: skip
    for name in ("tx_timeout", "total_resets", "suspected_poll_starvation", "wd_expired"):
        host.ethtool.values[name] += 1
    assert host.events() == []  # the same trouble goes on


@pytest.mark.parametrize("name", ["ens5", BUS, None])
def test_what_the_log_told_is_not_told_twice(host: Host, name: str | None) -> None:
    host.next()
    for kind in RESETS:
        host.setting.log_reports.tell(host.now_ns - 20 * SECOND_NS, kind, (name,))
    host.ethtool.values["total_resets"] += 1
    host.ethtool.values["suspected_poll_starvation"] += 1
    host.write(f"{NIC}/queues/tx-13/tx_timeout", "1")
    assert [event.kind for event in host.events()] == ["nic_stat_jump"] * 3


def test_an_old_line_or_one_of_another_device_does_not_count(host: Host) -> None:
    host.next()
    host.setting.log_reports.tell(host.now_ns - 31 * SECOND_NS, "nic_reset", ("ens5",))
    host.setting.log_reports.tell(host.now_ns, "nic_reset", ("eth7", "0000:21:00.0"))
    host.setting.log_reports.tell(host.now_ns, "nic_tx_timeout", ("ens5",))
    host.ethtool.values["total_resets"] += 1
    assert [event.kind for event in host.events()] == ["nic_reset"]


def test_a_link_that_goes_and_comes(host: Host) -> None:
    host.next()
    host.write(f"{NIC}/carrier", "0")
    host.write(f"{NIC}/carrier_changes", "3")
    (down,) = host.events()
    assert (down.kind, down.subject, down.message) == ("nic_carrier", "ens5", "the link is down")
    host.write(f"{NIC}/carrier", "1")
    host.write(f"{NIC}/carrier_changes", "6")
    (up,) = host.events()
    assert up.message == "the link is up, 3 changes"


def test_an_interrupt_that_moves(host: Host) -> None:
    host.next()
    host.write(f"proc/irq/{FIRST_IRQ + 14}/effective_affinity_list", "40")
    said = host.next()
    (event,) = said.events
    assert (event.kind, event.cpu) == ("irq_moved", 40)
    assert event.message == "interrupt 114 (eth0-Tx-Rx-13) moved from core 39 to 40"
    assert said.rows_of(NicQueueRow)[0].effective == "40"


def test_a_reset_device_may_come_back_with_its_counters_at_zero(host: Host) -> None:
    host.ethtool.values["tx_timeout"] = 5
    host.next()
    host.ethtool.values["tx_timeout"] = 0
    said = host.next()
    assert said.events == []
    assert [row.value for row in said.rows_of(NicStatisticRow)] == [0]


def test_a_device_that_goes_away_and_another_that_comes(host: Host) -> None:
    host.next()
    link = host.root / NIC
    target = link.readlink()
    link.unlink()
    with pytest.raises(SourceAbsent):
        host.next()
    (host.root / "sys/class/net/eth7").symlink_to(target)
    assert [row.nic for row in host.next().rows_of(NicRow)] == ["eth7"]


def test_another_namespaces_device_of_the_same_name_is_not_asked(host: Host) -> None:
    host.ethtool.info = DriverInfo("veth", "1.0", None, None)
    said = host.next()
    assert not said.rows_of(NicStatisticRow)
    (nic,) = said.rows_of(NicRow)
    assert (nic.driver, nic.version) == ("ena", None)


@pytest.mark.live
def test_this_machines_devices(tmp_path: Path) -> None:
    names = list_nics(Path("/sys"))
    if not names:
        pytest.skip("no network device with hardware behind it here")
    observer = make(Setting(Places(), tmp_path))
    said = observer.observe(SECOND_NS)
    observer.close()
    assert [row.nic for row in said.rows_of(NicRow)] == names
    assert all(row.driver for row in said.rows_of(NicRow))
