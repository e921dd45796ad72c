"""Network devices: what they are, which cores serve their queues, what their drivers count.

Statistics that tell of trouble are written whenever they change, the others once a
minute: a driver may have ten thousand of them. A reset or time-out that was counted and not
logged is told as the log would have told it.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodescope.errors import SourceAbsent, SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS, parse_cpu_list
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.interrupts import read_queue_interrupts
from nodescope.records.event import Event
from nodescope.records.event_details import CarrierDetails, MovedInterruptDetails, NicDetails
from nodescope.records.node_tables import NicQueueRow, NicRow, NicStatisticRow
from nodescope.sources.network.affinity import read_affinity
from nodescope.sources.network.driver_statistics import Meaning, classify_statistic
from nodescope.sources.network.ethtool import DriverInfo, Ethtool, KernelEthtool
from nodescope.sources.network.interrupts import QueueInterrupt
from nodescope.sources.network.nics import Nic, list_nics, read_nic

_QUEUES_NS = 60 * SECOND_NS  # which interrupts there are
_REST_NS = 60 * SECOND_NS  # statistics that tell of no trouble
_QUIET_NS = 60 * SECOND_NS  # so long a counter must rest before its rise is an event again
_LOGGED_NS = 30 * SECOND_NS  # a reset is logged when it begins, and counted when it is over


class NicsObserver:
    """Looks every ten seconds."""

    interval_ns = 10 * SECOND_NS
    patient = False

    def __init__(self, setting: Setting, ethtool: Ethtool | None = None) -> None:
        self._places = setting.places
        self._reports = setting.log_reports
        self._ethtool = ethtool
        self._own = ethtool is None
        self._whole = True
        self._nics: dict[str, NicRow] = {}
        self._drivers: dict[str, DriverInfo | None] = {}
        self._interrupts: list[QueueInterrupt] = []
        self._find_at_ns = 0
        self._queues: dict[tuple[str, int, str | None, int], NicQueueRow] = {}
        self._told: dict[str, dict[str, int]] = {}  # statistics as they were written
        self._known: dict[str, Mapping[str, int]] = {}  # as they were read
        self._rest_at_ns = 0
        self._meanings: dict[str, Meaning] = {}
        self._risen_ns: dict[tuple[str, str], int] = {}
        self._timeouts: dict[str, Mapping[int, int]] = {}  # by device and queue
        self._looked_ns: int | None = None

    def begin_segment(self) -> None:
        self._whole = True

    def observe(self, now_ns: int) -> Observation:
        names = list_nics(self._places.sys)
        if not names:
            raise SourceAbsent(self._places.sys / "class/net", "no network device here")
        said = Observation()
        if now_ns >= self._find_at_ns or set(names) != set(self._nics):
            self._find(now_ns)
        nics = [read_nic(self._places.sys, name) for name in names]
        for nic in nics:
            self._say_nic(now_ns, nic, said)
            if self._drivers[nic.nic] is not None:
                self._say_statistics(now_ns, nic.nic, said)
        self._say_queues(now_ns, nics, said)
        for name in self._nics.keys() - set(names):
            self._forget(name)
        if now_ns >= self._rest_at_ns:
            self._rest_at_ns = now_ns + _REST_NS
        self._whole = False
        self._looked_ns = now_ns
        return said

    def close(self) -> None:
        if self._own and self._ethtool is not None:
            self._ethtool.close()
            self._ethtool = None

    def _find(self, now_ns: int) -> None:
        """Read the facts that seldom change: interrupts and drivers."""
        self._find_at_ns = now_ns + _QUEUES_NS
        self._interrupts = read_queue_interrupts(self._places)
        self._drivers = {}

    def _forget(self, nic: str) -> None:
        del self._nics[nic]
        self._timeouts.pop(nic, None)
        self._told.pop(nic, None)
        self._known.pop(nic, None)

    def _ask(self) -> Ethtool:
        if self._ethtool is None:
            self._ethtool = KernelEthtool()
        return self._ethtool

    def _driver(self, nic: Nic) -> DriverInfo | None:
        """Read the driver's description; None if the answer is about another device.

        The kernel answers for the network namespace we are in. In a container of its own
        the node's sysfs shows `eth0`, and ours is the end of a veth.
        """
        if nic.nic in self._drivers:
            return self._drivers[nic.nic]
        info = self._ask().driver(nic.nic)
        on_pci = nic.bus is not None and nic.bus.count(":") == 2
        return None if info is None or (on_pci and info.bus != nic.bus) else info

    # -- the devices ---------------------------------------------------------

    def _say_nic(self, now_ns: int, nic: Nic, said: Observation) -> None:
        driver = self._drivers[nic.nic] = self._driver(nic)
        row = NicRow(
            time_ns=now_ns,
            nic=nic.nic,
            driver=nic.driver or (driver.driver if driver else None),
            version=driver.version if driver else None,
            bus=nic.bus,
            up=nic.up,
            carrier=nic.carrier,
            carrier_changes=nic.carrier_changes,
            rx_queues=nic.rx_queues,
            tx_queues=nic.tx_queues,
            tx_timeouts=sum(nic.tx_timeouts.values()) if nic.tx_timeouts else None,
            rx_packets=nic.rx_packets,
            tx_packets=nic.tx_packets,
            rx_bytes=nic.rx_bytes,
            tx_bytes=nic.tx_bytes,
            rx_dropped=nic.rx_dropped,
            tx_errors=nic.tx_errors,
        )
        before = self._nics.get(nic.nic)
        self._nics[nic.nic] = row
        if self._whole or not row.is_repeat_of(before):
            said.add(row)
        if before is not None:
            _compare(before, row, said)
            self._compare_timeouts(now_ns, nic, said)
        self._timeouts[nic.nic] = nic.tx_timeouts

    def _compare_timeouts(self, now_ns: int, nic: Nic, said: Observation) -> None:
        """Compare the kernel's own counters of time-outs, queue by queue."""
        before = self._timeouts.get(nic.nic, {})
        both = before.keys() & nic.tx_timeouts.keys()
        rose = sorted(queue for queue in both if nic.tx_timeouts[queue] > before[queue])
        if rose:
            earlier, now = sum(before.values()), sum(nic.tx_timeouts.values())
            self._rise(now_ns, nic.nic, "tx_timeout", earlier, now, said, tuple(rose))

    # -- queues and the cores that serve them ----------------------------------

    def _say_queues(self, now_ns: int, nics: list[Nic], said: Observation) -> None:
        seen = set()
        timeouts = {nic.nic: nic.tx_timeouts for nic in nics}
        for each in self._interrupts:
            if each.queue is None or each.nic not in timeouts:
                continue
            affinity = read_affinity(self._places.proc, each.irq)
            sends = each.direction != "rx"
            row = NicQueueRow(
                time_ns=now_ns,
                nic=each.nic,
                queue=each.queue,
                direction=each.direction,
                irq=each.irq,
                irq_name=each.name,
                affinity=affinity.allowed,
                effective=affinity.effective,
                tx_timeouts=timeouts[each.nic].get(each.queue) if sends else None,
            )
            key = (each.nic, each.queue, each.direction, each.irq)
            seen.add(key)
            before = self._queues.get(key)
            self._queues[key] = row
            if self._whole or not row.is_repeat_of(before):
                said.add(row)
            if before is not None and before.effective != row.effective:
                said.events.append(_moved(before, row))
        for key in self._queues.keys() - seen:
            del self._queues[key]

    # -- what the driver counts ------------------------------------------------

    def _say_statistics(self, now_ns: int, nic: str, said: Observation) -> None:
        try:
            values = self._ask().statistics(nic)
        except SourceError:  # the driver is in the middle of a reset
            return
        before = self._known.get(nic)
        if values == before and not self._whole:
            return
        self._known[nic] = values
        told = self._told.setdefault(nic, {})
        rest = self._whole or now_ns >= self._rest_at_ns
        jumps: dict[str, tuple[int, int]] = {}
        for name, value in values.items():
            meaning = self._meanings.get(name)
            if meaning is None:
                meaning = self._meanings[name] = classify_statistic(name)
            alarm = meaning.alarm
            if alarm is not None and before is not None and value > before.get(name, value):
                earlier, now = jumps.get(alarm, (0, 0))
                jumps[alarm] = (earlier + before[name], now + value)
            if self._whole or ((meaning.trouble or rest) and told.get(name) != value):
                told[name] = value
                said.add(NicStatisticRow(time_ns=now_ns, nic=nic, name=name, value=value))
        for name, (earlier, value) in jumps.items():
            self._rise(now_ns, nic, name, earlier, value, said)

    def _rise(
        self,
        now_ns: int,
        nic: str,
        name: str,
        before: int,
        value: int,
        said: Observation,
        queues: tuple[int, ...] = (),
    ) -> None:
        """An event where a counter of trouble begins to rise."""
        if value <= before:
            return
        kind = classify_statistic(name).kind
        last = self._risen_ns.get((nic, kind or name))
        self._risen_ns[nic, kind or name] = now_ns
        if last is not None and now_ns - last < _QUIET_NS:
            return
        counted = NicDetails(
            statistic=name,
            before=before,
            value=value,
            rise=value - before,
            queue=queues[0] if len(queues) == 1 else None,
            queues=queues if len(queues) > 1 else None,
        )
        message = f"{name} rose by {value - before}"
        if kind is None or self._is_logged(now_ns, nic, kind):
            said.events.append(Event(now_ns, "nic_stat_jump", nic, message, details=counted))
            return
        # it happened at some moment since the last look
        looked_ns = now_ns if self._looked_ns is None else self._looked_ns
        row = self._nics[nic]
        details = counted.replace(
            known_from="counters",
            within_s=round((now_ns - looked_ns) / SECOND_NS, 1),
            driver=row.driver or None,
            version=row.version or None,
            interface=nic,
        )
        message += ": counted, and not in the kernel's log"
        said.events.append(Event(now_ns, kind, nic, message, details=details))

    def _is_logged(self, now_ns: int, nic: str, kind: str) -> bool:
        since_ns = (now_ns if self._looked_ns is None else self._looked_ns) - _LOGGED_NS
        return self._reports.told(kind, (nic, self._nics[nic].bus), since_ns)


def _compare(before: NicRow, now: NicRow, said: Observation) -> None:
    """Report a link that came or went between two looks."""
    changes = (now.carrier_changes or 0) - (before.carrier_changes or 0)
    if changes or now.carrier != before.carrier:
        state = {True: "up", False: "down", None: "not known"}[now.carrier]
        times = f", {changes} changes" if changes > 1 else ""
        details = CarrierDetails(carrier=now.carrier, changes=changes)
        message = f"the link is {state}{times}"
        said.events.append(Event(now.time_ns, "nic_carrier", now.nic, message, details=details))


def _moved(before: NicQueueRow, now: NicQueueRow) -> Event:
    """Return the event of an interrupt that another core serves now."""
    cpus = parse_cpu_list(now.effective) if now.effective else []
    return Event(
        now.time_ns,
        "irq_moved",
        now.nic,
        f"interrupt {now.irq} ({now.irq_name}) moved from core "
        f"{before.effective or '?'} to {now.effective or '?'}",
        cpu=cpus[0] if len(cpus) == 1 else None,
        details=MovedInterruptDetails(
            irq=now.irq,
            queue=now.queue,
            moved_from=before.effective,
            moved_to=now.effective,
        ),
    )


def make(setting: Setting) -> NicsObserver:
    """The observer."""
    return NicsObserver(setting)
