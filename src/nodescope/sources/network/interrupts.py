"""Which interrupt serves which queue of which network device.

`/proc/interrupts` (kernel/irq/proc.c) names each interrupt by what its driver
called it. The name gives the queue; it gives the device only where the device
was not renamed since, so the device's own list of interrupts (`msi_irqs` of its
bus) is asked as well.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource
from nodescope.sources.kernel_files import read_file

_NUMBERS = re.compile(r"\d+")
# Names of interrupts that carry no packets, in whatever driver.
_CONTROL = re.compile(r"config|mgmnt|mgmt|async|ctrl|control|misc|cmd|pages|fdir|admin|aq$|adminq")


@dataclass(frozen=True, slots=True)
class Device:
    """The names that tie interrupts to a network device."""

    nic: str
    bus: str | None = None  # address on the bus: 0000:20:03.0
    name: str | None = None  # of the device itself: virtio2, or the bus address again
    irqs: frozenset[int] = frozenset()  # those the device owns


@dataclass(frozen=True, slots=True)
class QueueInterrupt:
    """An interrupt of a network device."""

    irq: int
    name: str
    nic: str
    queue: int | None  # None: not about packets
    direction: str | None  # rx, tx or rx+tx; None where the name does not say

    @property
    def receives(self) -> bool:
        """Return whether NET_RX has to follow this interrupt."""
        return self.queue is not None and self.direction != "tx"


def read_names(proc: Path) -> dict[int, str]:
    """Every numbered interrupt's name."""
    path = proc / "interrupts"
    return parse_names(read_file(path), path)


def parse_names(content: bytes, path: str | Path = "interrupts") -> dict[int, str]:
    """The last word of each numbered line; one that nobody asked for has none and is left out."""
    header, _, body = content.partition(b"\n")
    cores = header.count(b"CPU")
    if not cores:
        raise MalformedSource(path, "no header of cores", 1)
    names = {}
    for line in body.split(b"\n"):
        number, colon, rest = line.partition(b":")
        number = number.strip()
        if not colon or not number.isdigit():
            continue
        words = rest.split(None, cores)
        described = words[cores].split() if len(words) > cores else []
        if len(described) > 1:  # the chip comes first
            names[int(number)] = described[-1].decode("utf-8", "replace")
    return names


def parse_queue(name: str) -> tuple[int | None, str | None]:
    """Queue and direction from a driver's name of an interrupt."""
    own = name.partition("@")[0].lower()
    if _CONTROL.search(own):
        return None, None
    received = "rx" in own or "input" in own
    sent = "tx" in own or "output" in own
    both = (received and sent) or "comp" in own
    direction = "rx+tx" if both else "rx" if received else "tx" if sent else None
    if direction is None and "ntfy" not in own:
        return None, None
    # Xen names the queue before the direction: eth0-q3-rx.
    numbers = _NUMBERS.findall(re.sub(r"^.*?(?=rx|tx|input|output|comp|ntfy)", "", own, count=1))
    numbers = numbers or _NUMBERS.findall(own)
    return (int(numbers[-1]) if numbers else 0), direction


def assign(names: Mapping[int, str], devices: Sequence[Device]) -> list[QueueInterrupt]:
    """The interrupts of the devices, by their names and by the devices' own lists."""
    owned = [(irq, name, _find_device(irq, name, devices)) for irq, name in names.items()]
    per_device = Counter(device.nic for _, _, device in owned if device is not None)
    found = []
    for irq, name, device in owned:
        if device is None:
            continue
        # A device with one interrupt for everything gives it its own name; one with more
        # (e1000e: eth0-rx-0, eth0-tx-0, eth0) tells by that one of the link.
        everything = name == device.nic and per_device[device.nic] == 1
        queue, direction = (0, "rx+tx") if everything else parse_queue(_without(name, device.nic))
        found.append(QueueInterrupt(irq, name, device.nic, queue, direction))
    return found


def _find_device(irq: int, name: str, devices: Iterable[Device]) -> Device | None:
    """By the interface in its name, by the bus in it, by the device in it, by its number."""
    _, _, bus = name.partition("@")
    bus = bus.removeprefix("pci:")
    parts = name.split("-")
    owner = None
    for device in devices:
        if device.nic in parts or (bus and device.bus == bus) or parts[0] == device.name:
            return device
        if irq in device.irqs:
            owner = owner or device
    return owner


def _without(name: str, nic: str) -> str:
    """A name without the interface: the number in `ens5` is not a queue."""
    return "-".join(part for part in name.split("-") if part != nic)


def read_owned(device: str) -> frozenset[int]:
    """The interrupts of a device: in its own folder, or that of the bus it sits on (virtio)."""
    for folder in (device, f"{device}/.."):
        try:
            return frozenset(int(name) for name in os.listdir(f"{folder}/msi_irqs"))
        except (OSError, ValueError):
            continue
    return frozenset()
