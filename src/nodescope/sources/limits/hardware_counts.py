"""Errors and heat that the hardware counts, as sysfs shows them.

| counter | file | subject |
|---|---|---|
| `edac_ce`, `edac_ue` | `edac/mc/mc*/{dimm,rank}*/dimm_{ce,ue}_count`, else `mc*` | label |
| `core_throttle`, `package_throttle` | `cpu*/thermal_throttle/*_throttle_count` | package |
| `aer_correctable`, `aer_nonfatal`, `aer_fatal` | `aer_dev_*` of PCI devices, v4.19 | address |
| RDMA ports | `class/infiniband/*/ports/*/{counters,hw_counters}` | `device/port` |

Reading an RDMA port asks its firmware and may take milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from nodescope.errors import SourceError
from nodescope.sources.kernel_files import read_file, read_number, read_text
from nodescope.sources.limits.reading import TroubleCount

_RDMA_EVENTS = frozenset(
    ("symbol_error", "link_error_recovery", "local_ack_timeout_err", "unresponsive_remote_events",
     "impaired_remote_conn_events", "rdma_read_wr_err", "rdma_write_wr_err")
)  # fmt: skip
# Lossy networks drop and repeat at all times: counted, and no event.
_RDMA_COUNTED = frozenset(
    ("out_of_sequence", "rx_drops", "retrans_timeout_events", "retrans_pkts")
)  # fmt: skip
_LINK_DOWNED = "link_downed"
KINDS = {
    "edac_ce": "edac_ce",
    "edac_ue": "edac_ue",
    "core_throttle": "cpu_hot",
    "package_throttle": "cpu_hot",
    "aer_correctable": "pcie_corrected",
    "aer_nonfatal": "pcie_error",
    "aer_fatal": "pcie_error",
    _LINK_DOWNED: "rdma_link_down",
    **dict.fromkeys(_RDMA_EVENTS, "rdma_errors"),
}
"""The kind of event that a rise of a counter is; others are counted only."""


class Counter(NamedTuple):
    """A counter that this machine has: the files that are added up for it."""

    name: str
    subject: str
    paths: tuple[Path, ...]
    read: Callable[[Path], int | None] = read_number


def find_counters(sys: Path) -> list[Counter]:
    """Return every counter that this machine has."""
    return [
        *_find_memory(sys / "devices/system/edac/mc"),
        *_find_heat(sys / "devices/system/cpu"),
        *_find_pci(sys / "bus/pci/devices"),
        *_find_rdma(sys / "class/infiniband"),
    ]


def read_counter(counter: Counter) -> TroubleCount | None:
    """Return the value of a counter; None if none of its files can be read now."""
    values = [value for path in counter.paths if (value := counter.read(path)) is not None]
    return TroubleCount(counter.name, counter.subject, sum(values)) if values else None


def _find_memory(folder: Path) -> Iterable[Counter]:
    for controller in sorted(folder.glob("mc[0-9]*")):
        modules = sorted((*controller.glob("dimm[0-9]*"), *controller.glob("rank[0-9]*")))
        for module in modules:
            label = read_text(module / "dimm_label") or f"{controller.name}/{module.name}"
            yield Counter("edac_ce", label, (module / "dimm_ce_count",))
            yield Counter("edac_ue", label, (module / "dimm_ue_count",))
        if not modules:
            yield Counter("edac_ce", controller.name, (controller / "ce_count",))
            yield Counter("edac_ue", controller.name, (controller / "ue_count",))


def _find_heat(folder: Path) -> Iterable[Counter]:
    packages: dict[str, list[Path]] = {}
    for throttle in sorted(folder.glob("cpu[0-9]*/thermal_throttle")):
        package = read_text(throttle.parent / "topology/physical_package_id") or "0"
        packages.setdefault(f"package{package}", []).append(throttle)
    for package, cores in packages.items():
        yield Counter("core_throttle", package, tuple(c / "core_throttle_count" for c in cores))
        # Each core of a package shows the same number.
        yield Counter("package_throttle", package, (cores[0] / "package_throttle_count",))


def _find_pci(folder: Path) -> Iterable[Counter]:
    for severity in ("correctable", "nonfatal", "fatal"):
        for path in sorted(folder.glob(f"*/aer_dev_{severity}")):
            yield Counter(f"aer_{severity}", path.parent.name, (path,), read_aer_total)


def read_aer_total(path: Path) -> int | None:
    """Return the total of a file of AER counters; None if it cannot be read."""
    try:
        return parse_aer_total(read_file(path))
    except SourceError:
        return None


def parse_aer_total(content: bytes) -> int | None:
    """Return the total: the line `TOTAL_ERR_COR 12` after one line for each kind of error."""
    for line in reversed(content.split(b"\n")):
        name, _, value = line.partition(b" ")
        if name.startswith(b"TOTAL_ERR") and value.strip().isdigit():
            return int(value)
    return None


def _find_rdma(folder: Path) -> Iterable[Counter]:
    wanted = _RDMA_EVENTS | _RDMA_COUNTED | {_LINK_DOWNED}
    for path in sorted(folder.glob("*/ports/*/*counters/*")):
        if path.name in wanted:
            port = path.parent.parent
            yield Counter(path.name, f"{port.parent.parent.name}/{port.name}", (path,))
