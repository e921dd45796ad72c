"""Network devices, their queues and cores, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from nodescope.analysis.network import CoreReport, Network, NicReport, Queue
from nodescope.pictures.documents import Answer, events_document
from nodescope.pictures.terminal import Terminal
from nodescope.pictures.text import visible
from nodescope.quantities import format_cpu_list, format_duration

_EVENTS = 10
_TROUBLE = 12


def network_document(network: Network) -> Answer:
    """`nics` with their `queues`, `cores`, `events`; counts are rises in the window."""
    events, said = events_document(network.events)
    return {
        "nics": [asdict(nic) for nic in network.nics],
        "cores": [asdict(core) for core in network.cores],
        "events": events,
    }, said


def render_network(
    network: Network, terminal: Terminal, limit: int, events: str | None = None
) -> str:
    """Return devices with their queues, the cores that had packet work, and what happened.

    `events` is the command that lists all of what happened.
    """
    lines: list[str] = []
    for nic in network.nics:
        lines += _nic_lines(nic, terminal, limit)
    if not network.nics:
        lines.append("no network device with hardware behind it was seen")
    lines += _core_lines(network.cores, terminal, limit)
    if network.events:
        lines.append(terminal.bold("events"))
    for event in network.events[-_EVENTS:]:
        lines.append(f"  {visible(event.subject)}: {visible(event.message)}")
    if len(network.events) > _EVENTS:
        earlier = len(network.events) - _EVENTS
        lines.append(terminal.faint(f"  … {earlier:,} earlier{f': {events}' if events else ''}"))
    return "\n".join(lines)


def _nic_lines(nic: NicReport, terminal: Terminal, limit: int) -> list[str]:
    driver = " ".join(visible(part) for part in (nic.driver, nic.version) if part)
    link = {True: "link up", False: "link down", None: "link not known"}[nic.carrier]
    said = [driver or "driver not known", visible(nic.bus or "no bus"), link]
    said.append(f"{_number(nic.rx_queues)} receive and {_number(nic.tx_queues)} transmit queues")
    lines = [f"{terminal.bold(visible(nic.nic))}  {', '.join(said)}"]
    lines.append(
        f"  {_number(nic.rx_packets)} packets in, {_number(nic.tx_packets)} out, "
        f"{_number(nic.rx_dropped)} dropped, {_number(nic.tx_errors)} errors on sending"
    )
    lines.append(
        f"  {_number(nic.tx_timeouts)} transmit timeouts, {_number(nic.resets)} resets, "
        f"{_number(nic.carrier_changes)} changes of the link"
    )
    if nic.trouble:
        worst = sorted(nic.trouble.items(), key=lambda item: (-item[1], item[0]))
        told = [f"{visible(name)} +{rise:,}" for name, rise in worst[:_TROUBLE]]
        more = f", and {len(worst) - _TROUBLE} more" if len(worst) > _TROUBLE else ""
        lines.append(f"  the driver counted: {', '.join(told)}{more}")
    if nic.queues:
        lines.append(terminal.faint("  queue  way    irq    core      may go to  interrupts"))
        shown = nic.queues[:limit] if limit else nic.queues
        lines += [_queue_line(queue) for queue in shown]
        if len(shown) < len(nic.queues):
            left = len(nic.queues) - len(shown)
            lines.append(terminal.faint(f"  … {left} more: --limit 0 shows all"))
    return lines


def _queue_line(queue: Queue) -> str:
    irq = "" if queue.irq is None else str(queue.irq)
    total = sum(queue.interrupts.values())
    where = f" on core {format_cpu_list(list(queue.interrupts))}" if total else ""
    timeouts = f", {queue.tx_timeouts} timeouts" if queue.tx_timeouts else ""
    effective, affinity = visible(queue.effective or "?"), visible(queue.affinity or "?")
    return (
        f"  {queue.queue:>5}  {queue.direction or '?':<5}  {irq:<5}  {effective:<8}  "
        f"{affinity:<9}  {total:,}{where}{timeouts}"
    )


def _core_lines(cores: Sequence[CoreReport], terminal: Terminal, limit: int) -> list[str]:
    worked = [core for core in cores if core.worked]
    if not worked:
        return ["no core had packet work"]
    order = sorted(worked, key=lambda core: (-(core.starved_ns or 0), -(core.processed or 0)))
    shown = order[:limit] if limit else order
    head = "   core    packets     NET_RX   dropped  squeezed  starved  serves"
    lines = [f"{terminal.bold('cores')}", terminal.faint(head)]
    for core in shown:
        starved = format_duration(core.starved_ns) if core.starved_ns else "-"
        serves = visible(", ".join(core.serves))
        numbers = (
            f"{_number(core.processed):>10} {_number(core.net_rx):>10} "
            f"{_number(core.dropped):>9} {_number(core.squeezed):>9}"
        )
        lines.append(f"  {core.cpu:>5} {numbers}  {starved:>7}  {serves}".rstrip())
    if len(shown) < len(worked):
        left = len(worked) - len(shown)
        lines.append(terminal.faint(f"  … {left} more with packet work: --limit 0 shows all"))
    return lines


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
