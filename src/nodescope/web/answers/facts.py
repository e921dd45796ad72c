"""The node at one moment: network queues and their cores, units, containers, zombies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodescope.analysis.network import CoreReport, Network, NicReport, Queue, derive_network
from nodescope.diagnosis.case import Case
from nodescope.errors import UsageError
from nodescope.judgement.zombie_reading import ZombieReading, read_zombies
from nodescope.pictures.answer_size import LARGEST, cut, keep_fitting
from nodescope.quantities import MILLISECOND_NS, SECOND_NS, parse_cpu_list
from nodescope.recording.window import Window
from nodescope.records.json import Json
from nodescope.records.node_tables import ContainerRow, UnitRow
from nodescope.records.table import Row
from nodescope.web.answers.replies import json_reply
from nodescope.web.question import Question, Reply, to_ms

RECENT_NS = 60 * SECOND_NS  # how far back a core counts as starved
_NOT_SHOWN = {
    UnitRow: ("time_ns", "load"),
    ContainerRow: ("time_ns", "started_wall_ns", "finished_wall_ns", "cgroup_parent"),
}
_SHARE = LARGEST // 4 - 1000  # of an answer, for each list


def facts(question: Question) -> Reply:
    """Return the last known facts before the moment; null or empty where not recorded."""
    asked = question.moment("at")
    known = question.snapshot.window
    at_ns = known.to_ns if asked is None else min(max(asked, known.from_ns), known.to_ns)
    case = Case(question.recording, Window(max(0, at_ns - RECENT_NS), at_ns + 1))
    return json_reply(
        {
            "at_ms": to_ms(at_ns),
            "network": _network(question, case),
            "units": _rows(UnitRow, case.state(UnitRow, at_ns)),
            "containers": _rows(ContainerRow, case.state(ContainerRow, at_ns)),
            "zombies": _zombies(question, at_ns),
        }
    )


def _rows(kind: type[Row], rows: Sequence[Row]) -> list[dict[str, Json]]:
    """Return rows as documents, without the columns that are not shown."""
    names = [name for name in kind.names() if name not in _NOT_SHOWN[kind]]
    documents = [{name: _cut(getattr(row, name)) for name in names} for row in rows]
    return keep_fitting(documents, _SHARE)


def _cut(value: Json) -> Json:
    return cut(value) if isinstance(value, str) else value


def _zombies(question: Question, at_ns: int) -> dict[str, Json] | None:
    reading = read_zombies(question.recording, at_ns)
    if not isinstance(reading, ZombieReading):
        return None
    parents = [
        {"path": cut(parent.path), "dying": parent.dying, "exact": parent.exact,
         "kind": kind, "held_bytes": amount}
        for parent in reading.parents
        for kind, amount in (*parent.held.items(), *(() if parent.held else ((None, None),)))
    ]  # fmt: skip
    times = {"read_ms": reading.read_ns, "parents_read_ms": reading.parents_read_ns}
    return {
        **{name: None if ns is None else ns / MILLISECOND_NS for name, ns in times.items()},
        **{name: getattr(reading, name) for name in ("tracked", "visible", "dying", "version")},
        "walk_ms": None if reading.walk is None else reading.walk.took_ns / MILLISECOND_NS,
        "parents": keep_fitting(parents, _SHARE),
    }


def _network(question: Question, case: Case) -> dict[str, Json] | None:
    if not question.recording.has("nics", case.window):
        return None
    network = derive_network(question.recording, case.window)
    cores = {core.cpu: core for core in network.cores}
    return {
        "over_ms": RECENT_NS / MILLISECOND_NS,
        "nics": keep_fitting([_nic(nic) for nic in network.nics], _SHARE // 2),
        "queues": keep_fitting(_queues(network, cores), _SHARE // 2),
    }


def _nic(nic: NicReport) -> dict[str, Json]:
    return {
        "name": cut(nic.nic),
        "driver": _cut(nic.driver),
        "version": _cut(nic.version),
        "bus": _cut(nic.bus),
        "up": nic.up,
        "carrier": nic.carrier,
        "rx_queues": nic.rx_queues,
        "tx_queues": nic.tx_queues,
        "tx_timeouts": nic.tx_timeouts,
        "rx_packets": nic.rx_packets,
        "tx_packets": nic.tx_packets,
        "rx_dropped": nic.rx_dropped,
        "tx_errors": nic.tx_errors,
        "resets": nic.resets,
    }


def _queues(network: Network, cores: Mapping[int, CoreReport]) -> list[dict[str, Json]]:
    return [_queue(nic.nic, queue, cores) for nic in network.nics for queue in nic.queues]


def _queue(nic: str, queue: Queue, cores: Mapping[int, CoreReport]) -> dict[str, Json]:
    serving = _cpus(queue.effective) or _cpus(queue.affinity) or sorted(queue.interrupts)
    starved = [cores[cpu].starved_ns or 0 for cpu in serving if cpu in cores]
    return {
        "nic": cut(nic),
        "queue": queue.queue,
        "direction": queue.direction,
        "irq": queue.irq,
        "irq_name": _cut(queue.irq_name),
        "cpus": serving,
        "affinity": _cut(queue.affinity),
        "interrupts": sum(queue.interrupts.values()),
        "tx_timeouts": queue.tx_timeouts,
        "starved": max(starved) / MILLISECOND_NS if starved else None,
    }


def _cpus(text: str | None) -> list[int]:
    try:
        return parse_cpu_list(text or "")
    except UsageError:
        return []
