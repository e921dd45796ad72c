"""Network devices in a window: their queues, the cores that serve them, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodescope.analysis.counters import Counters, Key, Tables, latest_rows
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.sources.network.driver_statistics import classify_statistic

EVENT_KINDS = frozenset(
    {
        "core_starved", "nic_carrier", "nic_stat_jump", "irq_moved", "nic_tx_timeout",
        "nic_poll_starved", "nic_tx_late", "nic_keepalive_lost", "nic_reset", "nic_reset_done",
        "nic_reset_failed", "nic_event_recovered", "nic_health",
    }
)  # fmt: skip
_NIC = ("driver", "version", "bus", "up", "carrier", "rx_queues", "tx_queues")
_NIC_COUNTERS = (
    "carrier_changes", "tx_timeouts", "rx_packets", "tx_packets", "rx_dropped", "tx_errors",
)  # fmt: skip
_QUEUE_KEYS = ("nic", "queue", "direction", "irq")
_QUEUE = ("irq_name", "affinity", "effective")
_CORE = ("processed", "dropped", "squeezed", "net_rx", "net_tx", "starved_ns")
_RESETS = ("total_resets", "resets", "reset_count")


@dataclass(slots=True)
class Queue:
    """A queue, its interrupt, and which cores that interrupt came to in the window."""

    queue: int
    direction: str | None
    irq: int | None
    irq_name: str | None
    affinity: str | None
    effective: str | None
    tx_timeouts: int | None
    interrupts: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class NicReport:
    """A device as it was last, and how far its counters rose; None is not known."""

    nic: str
    driver: str | None
    version: str | None
    bus: str | None
    up: bool | None
    carrier: bool | None
    rx_queues: int | None
    tx_queues: int | None
    carrier_changes: int | None
    tx_timeouts: int | None
    rx_packets: int | None
    tx_packets: int | None
    rx_dropped: int | None
    tx_errors: int | None
    resets: int = 0
    queues: list[Queue] = field(default_factory=list)
    trouble: dict[str, int] = field(default_factory=dict)  # statistics of the driver that rose


@dataclass(slots=True)
class CoreReport:
    """Packet work of a core in the window."""

    cpu: int
    processed: int | None
    dropped: int | None
    squeezed: int | None
    net_rx: int | None
    net_tx: int | None
    starved_ns: int | None
    interrupts: int = 0  # of network devices
    serves: list[str] = field(default_factory=list)  # devices' queues: `eth0 5`

    @property
    def worked(self) -> bool:
        """Whether there is anything to say of it."""
        counted = (self.processed, self.dropped, self.net_rx, self.net_tx, self.starved_ns)
        return bool(self.interrupts or any(counted))


@dataclass(slots=True)
class Network:
    """What is known of a window."""

    nics: list[NicReport]
    cores: list[CoreReport]
    events: list[Event]


def derive_network(parts: Iterable[Tables], events: Sequence[Event], window: Window) -> Network:
    """From the tables of a window's segments, in the order of time."""
    nics = Counters("nics", ["nic"], _NIC_COUNTERS)
    queues = Counters("nic_queues", _QUEUE_KEYS, ["tx_timeouts"])
    statistics = Counters("nic_statistics", ["nic", "name"], ["value"])
    interrupts = Counters("interrupts", ["irq", "cpu"], ["count"])
    softnet = Counters("softnet", ["cpu"], _CORE)
    devices: dict[Key, dict[str, Any]] = {}
    served: dict[Key, dict[str, Any]] = {}
    for tables in parts:
        for counters in (nics, queues, statistics, interrupts, softnet):
            counters.add(tables, window)
        # What a later segment does not have any more is gone.
        devices = latest_rows(tables, "nics", ["nic"], _NIC, window.to_ns) or devices
        served = latest_rows(tables, "nic_queues", _QUEUE_KEYS, _QUEUE, window.to_ns) or served
    reports = [_nic(row, nics.rises) for row in devices.values()]
    by_name = {report.nic: report for report in reports}
    for key, row in served.items():
        if row["nic"] in by_name:
            timeouts = queues.rises.get(key, {}).get("tx_timeouts")
            by_name[row["nic"]].queues.append(_queue(row, timeouts, interrupts.rises))
    for (nic, name), rises in statistics.rises.items():
        if nic in by_name and rises.get("value") and classify_statistic(name).trouble:
            by_name[nic].trouble[name] = rises["value"]
    told = [event for event in events if event.kind in EVENT_KINDS]
    for report in reports:
        report.queues.sort(key=lambda queue: (queue.queue, queue.direction or ""))
        report.resets = _resets(report, told)
    return Network(reports, _cores(softnet.rises, reports), told)


def _nic(row: dict[str, Any], rises: dict[Key, dict[str, int]]) -> NicReport:
    rose = rises.get((row["nic"],), {})
    return NicReport(**(row | {name: rose.get(name) for name in _NIC_COUNTERS}))


def _queue(
    row: dict[str, Any], timeouts: int | None, interrupts: dict[Key, dict[str, int]]
) -> Queue:
    by_core = {
        cpu: rises["count"]
        for (irq, cpu), rises in interrupts.items()
        if irq == row["irq"] and rises.get("count")
    }
    names = ("queue", "direction", "irq", *_QUEUE)
    return Queue(**{name: row[name] for name in names}, tx_timeouts=timeouts, interrupts=by_core)


def _resets(report: NicReport, events: Sequence[Event]) -> int:
    """As the kernel's log told them, or as the driver counted them."""
    logged = sum(event.kind == "nic_reset" and event.subject == report.nic for event in events)
    return max([logged, *(report.trouble.get(name, 0) for name in _RESETS)])


def _cores(rises: dict[Key, dict[str, int]], nics: Sequence[NicReport]) -> list[CoreReport]:
    cores = {}
    for (cpu,), rose in rises.items():
        known: dict[str, Any] = {name: rose.get(name) for name in _CORE}
        cores[cpu] = CoreReport(cpu, **known)
    for nic in nics:
        for queue in nic.queues:
            label = f"{nic.nic} {queue.queue}"
            for cpu, count in queue.interrupts.items():
                if cpu in cores:
                    cores[cpu].interrupts += count
                    if label not in cores[cpu].serves:
                        cores[cpu].serves.append(label)
    return sorted(cores.values(), key=lambda core: core.cpu)
