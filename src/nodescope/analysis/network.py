"""Network devices in a window: their queues, the cores that serve them, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nodescope.analysis.counters import Counters
from nodescope.recording.part import Part
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.node_tables import (
    InterruptRow,
    NicQueueRow,
    NicRow,
    NicStatisticRow,
    SoftnetRow,
)
from nodescope.sources.network.driver_statistics import classify_statistic

EVENT_KINDS = frozenset(
    {
        "core_starved", "nic_carrier", "nic_stat_jump", "irq_moved", "nic_tx_timeout",
        "nic_poll_starved", "nic_tx_late", "nic_keepalive_lost", "nic_reset", "nic_reset_done",
        "nic_reset_failed", "nic_event_recovered", "nic_health",
    }
)  # fmt: skip
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
        """Return whether there is anything to report of it."""
        counted = (self.processed, self.dropped, self.net_rx, self.net_tx, self.starved_ns)
        return bool(self.interrupts or any(counted))


@dataclass(slots=True)
class Network:
    """The network devices and cores of a window."""

    nics: list[NicReport]
    cores: list[CoreReport]
    events: list[Event]


def derive_network(
    recording: Recording, window: Window, parts: Iterable[Part] | None = None
) -> Network:
    """Derive it from a recording; `parts` are those of the window, if somebody counts them."""
    nics, queues = Counters(NicRow, window), Counters(NicQueueRow, window)
    statistics, softnet = Counters(NicStatisticRow, window), Counters(SoftnetRow, window)
    interrupts = Counters(InterruptRow, window)
    for part in recording.overlapping(window) if parts is None else parts:
        for counters in (nics, queues, statistics, interrupts, softnet):
            counters.add(part)
    last_ns = window.to_ns - 1
    devices = sorted(recording.state(NicRow, last_ns), key=lambda row: row.nic)
    by_name = {row.nic: _nic(nics.risen(row)) for row in devices}
    served = _served(interrupts.rises())
    for row in recording.state(NicQueueRow, last_ns):
        if row.nic in by_name:
            cores = {} if row.irq is None else served.get(row.irq, {})
            by_name[row.nic].queues.append(_queue(queues.risen(row), cores))
    for rise in statistics.rises():
        if rise.nic in by_name and rise.value and classify_statistic(rise.name).trouble:
            by_name[rise.nic].trouble[rise.name] = rise.value
    events = recording.events(window, *EVENT_KINDS)
    for report in by_name.values():
        report.queues.sort(key=lambda queue: (queue.queue, queue.direction or ""))
        report.resets = _resets(report, events)
    reports = list(by_name.values())
    return Network(reports, _cores(softnet.rises(), reports), events)


def _nic(row: NicRow) -> NicReport:
    return NicReport(
        nic=row.nic,
        driver=row.driver,
        version=row.version,
        bus=row.bus,
        up=row.up,
        carrier=row.carrier,
        rx_queues=row.rx_queues,
        tx_queues=row.tx_queues,
        carrier_changes=row.carrier_changes,
        tx_timeouts=row.tx_timeouts,
        rx_packets=row.rx_packets,
        tx_packets=row.tx_packets,
        rx_dropped=row.rx_dropped,
        tx_errors=row.tx_errors,
    )


def _queue(row: NicQueueRow, interrupts: dict[int, int]) -> Queue:
    return Queue(
        queue=row.queue,
        direction=row.direction,
        irq=row.irq,
        irq_name=row.irq_name,
        affinity=row.affinity,
        effective=row.effective,
        tx_timeouts=row.tx_timeouts,
        interrupts=dict(interrupts),
    )


def _served(rises: Iterable[InterruptRow]) -> dict[int, dict[int, int]]:
    """Return how often each core served each interrupt."""
    served: dict[int, dict[int, int]] = {}
    for row in rises:
        if row.count:
            served.setdefault(row.irq, {})[row.cpu] = row.count
    return served


def _resets(report: NicReport, events: Sequence[Event]) -> int:
    """Return how often a device was reset: as the kernel's log or the driver counted it."""
    logged = sum(event.kind == "nic_reset" and event.subject == report.nic for event in events)
    return max([logged, *(report.trouble.get(name, 0) for name in _RESETS)])


def _cores(rises: Iterable[SoftnetRow], nics: Sequence[NicReport]) -> list[CoreReport]:
    cores = {row.cpu: _core(row) for row in rises}
    for nic in nics:
        for queue in nic.queues:
            label = f"{nic.nic} {queue.queue}"
            for cpu, count in queue.interrupts.items():
                if cpu in cores:
                    cores[cpu].interrupts += count
                    if label not in cores[cpu].serves:
                        cores[cpu].serves.append(label)
    return sorted(cores.values(), key=lambda core: core.cpu)


def _core(row: SoftnetRow) -> CoreReport:
    return CoreReport(
        cpu=row.cpu,
        processed=row.processed,
        dropped=row.dropped,
        squeezed=row.squeezed,
        net_rx=row.net_rx,
        net_tx=row.net_tx,
        starved_ns=row.starved_ns,
    )
