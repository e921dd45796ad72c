"""Network devices with hardware behind them: `/sys/class/net` (net/core/net-sysfs.c).

Only devices that have a `device`: the pairs of containers come and go by the
hundred, and no interrupt belongs to them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import source_error
from nodescope.sources.kernel_files import read_number, read_text
from nodescope.sources.network.interrupts import Device, read_owned

_STATISTICS = ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_dropped", "tx_errors")


@dataclass(frozen=True, slots=True)
class Nic:
    """A device as sysfs has it now; None where it does not say."""

    nic: str
    driver: str | None
    bus: str | None
    up: bool | None
    carrier: bool | None
    carrier_changes: int | None
    threaded: bool  # its packets are served by threads, not by soft interrupts
    rx_queues: int
    tx_queues: int
    tx_timeouts: dict[int, int]  # by transmit queue
    rx_packets: int | None
    tx_packets: int | None
    rx_bytes: int | None
    tx_bytes: int | None
    rx_dropped: int | None
    tx_errors: int | None


def list_nics(sys: Path) -> list[str]:
    """The names of the devices."""
    folder = f"{sys}/class/net"
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise source_error(folder, error) from error
    return sorted(name for name in names if os.path.exists(f"{folder}/{name}/device"))


def read_device(sys: Path, nic: str) -> Device:
    """Read the names that tie interrupts to a network device."""
    device = f"{sys}/class/net/{nic}/device"
    name = os.path.basename(os.path.realpath(device))
    return Device(nic, _bus(device, name), name, read_owned(device))


def is_threaded(sys: Path, nic: str) -> bool:
    """Return whether threads serve its packets (5.12 and later)."""
    return read_number(f"{sys}/class/net/{nic}/threaded") not in (None, 0)


def read_nic(sys: Path, nic: str) -> Nic:
    """One device; one that has gone meanwhile has nothing but its name."""
    folder = f"{sys}/class/net/{nic}"
    device = f"{folder}/device"
    operational = read_text(f"{folder}/operstate")
    carrier = read_number(f"{folder}/carrier")
    receiving, timeouts = _read_queues(f"{folder}/queues")
    values = {name: read_number(f"{folder}/statistics/{name}") for name in _STATISTICS}
    return Nic(
        nic=nic,
        driver=_link_name(f"{device}/driver"),
        bus=_bus(device, os.path.basename(os.path.realpath(device))),
        up=None if operational is None else operational in ("up", "unknown"),
        carrier=None if carrier is None else carrier == 1,
        carrier_changes=read_number(f"{folder}/carrier_changes"),
        threaded=is_threaded(sys, nic),
        rx_queues=receiving,
        tx_queues=len(timeouts),
        tx_timeouts={queue: count for queue, count in timeouts.items() if count is not None},
        **values,
    )


def _read_queues(folder: str) -> tuple[int, dict[int, int | None]]:
    """How many receive, and how often each that sends timed out."""
    try:
        names = os.listdir(folder)
    except OSError:
        return 0, {}
    sending = sorted(int(name[3:]) for name in names if name.startswith("tx-"))
    timeouts = {queue: read_number(f"{folder}/tx-{queue}/tx_timeout") for queue in sending}
    return sum(name.startswith("rx-") for name in names), timeouts


def _bus(device: str, name: str) -> str | None:
    """The address on the PCI bus: of the device, or of what carries it (virtio)."""
    if name.count(":") == 2:
        return name
    carrier = os.path.basename(os.path.realpath(f"{device}/.."))
    return carrier if carrier.count(":") == 2 else name or None


def _link_name(path: str) -> str | None:
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return None
