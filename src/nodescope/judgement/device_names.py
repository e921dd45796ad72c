"""Names of devices: which disk a partition is of, and whether two names mean one device.

The kernel names partitions `sda1`, `nvme0n1p1`, `mmcblk0p2`; an NVMe controller is `nvme0`,
its namespace `nvme0n1`. PCI addresses come with and without their domain and function.
"""

from __future__ import annotations

import re

_PARTITION = re.compile(r"(?P<disk>(?:nvme\d+(?:c\d+)?n\d+|mmcblk\d+|md\d+|loop\d+|nbd\d+))p\d+")
_LETTERED = re.compile(r"(?P<disk>(?:sd|vd|xvd|hd)[a-z]+)\d+")
_NAMESPACE = re.compile(r"(?P<controller>nvme\d+)(?:c\d+)?n\d+")
_PCI = re.compile(
    r"(?:PCI:)?(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2}):(?P<slot>[0-9a-f]{2})"
    r"(?:\.(?P<function>[0-7]))?",
    re.IGNORECASE,
)


def disk_of(device: str) -> str:
    """Return the disk that a partition or namespace is of; of anything else its name."""
    name = device.removeprefix("/dev/")
    found = _PARTITION.fullmatch(name) or _LETTERED.fullmatch(name)
    if found is not None:
        name = found["disk"]
    namespace = _NAMESPACE.fullmatch(name)
    return namespace["controller"] if namespace is not None else name


def is_same_device(one: str, other: str) -> bool:
    """Decide whether two names are of one device, or of a disk and a part of it."""
    if disk_of(one) == disk_of(other):
        return True
    first, second = _address(one), _address(other)
    return first is not None and first == second


def _address(text: str) -> tuple[int, int, int] | None:
    """Return domain, bus and slot of a PCI address, wherever it stands in a name."""
    found = _PCI.search(text)
    if found is None:
        return None
    return int(found["domain"] or "0", 16), int(found["bus"], 16), int(found["slot"], 16)
