"""A SYNTHETIC host: 96 cores and an ENA device of 32 queues, made from the formats.

Nothing here was recorded. The formats are those of Linux 5.10 and of the ENA
driver 2.10; numbers are made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nodescope.sources.network.ethtool import DriverInfo

CORES = 96
QUEUES = 32
BUS = "0000:20:03.0"
FIRST_IRQ = 100  # the management interrupt; queue 0 has the next
OTHER_LINES = 150  # a real one has thousands
GLOBAL = (
    "tx_timeout", "suspend", "resume", "wd_expired", "interface_up", "interface_down",
    "admin_q_pause", "bw_in_allowance_exceeded", "bw_out_allowance_exceeded",
    "pps_allowance_exceeded", "conntrack_allowance_exceeded", "linklocal_allowance_exceeded",
    "total_resets", "suspected_poll_starvation",
)  # fmt: skip
SENT = ("cnt", "bytes", "queue_stop", "queue_wakeup", "dma_mapping_err", "missed_tx", "napi_comp")
GOT = ("cnt", "bytes", "csum_good", "refil_partial", "csum_bad", "page_alloc_fail", "bad_req_id")


class SyntheticEthtool:
    """Answers as an ENA driver; a test changes `values` and `info`."""

    def __init__(self) -> None:
        names = list(GLOBAL)
        for queue in range(QUEUES):
            names += [f"queue_{queue}_tx_{name}" for name in SENT]
            names += [f"queue_{queue}_rx_{name}" for name in GOT]
        self.values = dict.fromkeys(names, 0)
        self.info = DriverInfo("ena", "2.10.0g", None, BUS)

    def driver(self, nic: str) -> DriverInfo | None:
        return self.info

    def statistics(self, nic: str) -> Mapping[str, int]:
        return dict(self.values)

    def close(self) -> None:
        pass


class SyntheticHost:
    """The counters, and the tree of files that shows them."""

    def __init__(self, root: Path, columns: int = 13, per_irq: bool = True) -> None:
        self.root = root
        self.columns = columns
        self.per_irq = per_irq
        self.processed = [1000 + cpu for cpu in range(CORES)]
        self.backlog = [0] * CORES
        self.net_rx = [500] * CORES
        self.timer = [90_000] * CORES
        self.idle = [100_000] * CORES
        self.busy = [50_000] * CORES
        # Queue q goes to core 3q.
        self.irqs = {FIRST_IRQ + 1 + queue: [0] * CORES for queue in range(QUEUES)}
        for queue in range(QUEUES):
            self.irqs[FIRST_IRQ + 1 + queue][3 * queue] = 10_000
        self._make_device()
        self.write()

    def core_of(self, queue: int) -> int:
        return 3 * queue

    def serve(self, queue: int, times: int = 10) -> None:
        """An interrupt of the queue, and NET_RX after it."""
        cpu = self.core_of(queue)
        self.irqs[FIRST_IRQ + 1 + queue][cpu] += times
        self.net_rx[cpu] += times
        self.processed[cpu] += times

    def pass_time(self, ticks: int = 100, held: int | None = None) -> None:
        """All cores idle but the one held; a core that is not held serves its timers."""
        for cpu in range(CORES):
            if cpu == held:
                self.busy[cpu] += ticks
            else:
                self.idle[cpu] += ticks
                self.timer[cpu] += 3

    def write(self) -> None:
        self._file("proc/interrupts", self._interrupts())
        self._file("proc/softirqs", self._softirqs())
        self._file("proc/net/softnet_stat", self._softnet())
        self._file("proc/stat", self._stat())
        for irq, counts in self.irqs.items() if self.per_irq else ():
            self._file(f"sys/kernel/irq/{irq}/per_cpu_count", ",".join(map(str, counts)) + "\n")

    def _make_device(self) -> None:
        device = f"sys/devices/pci0000:20/{BUS}"
        nic = f"{device}/net/ens5"
        for name, text in {
            "operstate": "up", "carrier": "1", "carrier_changes": "2", "threaded": "0",
            "statistics/rx_packets": "1000", "statistics/tx_packets": "900",
            "statistics/rx_dropped": "0", "statistics/tx_errors": "0",
        }.items():  # fmt: skip
            self._file(f"{nic}/{name}", text + "\n")
        for queue in range(QUEUES):
            self._file(f"{nic}/queues/tx-{queue}/tx_timeout", "0\n")
            self._file(f"{nic}/queues/rx-{queue}/rps_cpus", "0\n")
        for irq in (FIRST_IRQ, *self.irqs):
            self._file(f"{device}/msi_irqs/{irq}", "msix\n")
            queue = irq - FIRST_IRQ - 1
            self._file(f"proc/irq/{irq}/smp_affinity_list", "0-95\n")
            self._file(f"proc/irq/{irq}/effective_affinity_list", f"{max(0, 3 * queue)}\n")
        if self.per_irq:
            self._file(f"sys/kernel/irq/{FIRST_IRQ}/per_cpu_count", ",".join(["0"] * CORES) + "\n")
        self._link(f"{nic}/device", f"../../../{BUS}")
        self._link(f"{device}/driver", "../../../bus/pci/drivers/ena")
        self._link("sys/class/net/ens5", f"../../devices/pci0000:20/{BUS}/net/ens5")
        self._file("sys/devices/virtual/net/lo/operstate", "unknown\n")
        self._link("sys/class/net/lo", "../../devices/virtual/net/lo")
        self._file("sys/devices/system/cpu/possible", "0-95\n")
        self._file("sys/devices/system/cpu/online", "0-95\n")
        self._file("sys/devices/system/cpu/isolated", "\n")
        self._file("sys/devices/system/cpu/nohz_full", "  (null)\n")

    def _interrupts(self) -> str:
        lines = ["     " + "".join(f"{f'CPU{cpu}':>11}" for cpu in range(CORES))]
        zero = "".join(f"{0:>11}" for _ in range(CORES))
        mgmnt = f"ena-mgmnt@pci:{BUS}"
        lines.append(f"{FIRST_IRQ:>4}:{zero}   PCI-MSI 16826368-edge      {mgmnt}")
        for irq, counts in self.irqs.items():
            queue = irq - FIRST_IRQ - 1
            told = "".join(f"{count:>11}" for count in counts)
            # Named when the device was still eth0.
            name = f"eth0-Tx-Rx-{queue}"
            lines.append(f"{irq:>4}:{told}   PCI-MSI {16826369 + queue}-edge      {name}")
        lines += [
            f"{200 + number:>4}:{zero}   PCI-MSI {number}-edge      nvme0q{number}"
            for number in range(OTHER_LINES)
        ]
        lines.append(f" LOC:{zero}   Local timer interrupts")
        return "\n".join(lines) + "\n"

    def _softirqs(self) -> str:
        kinds = {
            "HI": [0] * CORES, "TIMER": self.timer, "NET_TX": [7] * CORES, "NET_RX": self.net_rx,
            "BLOCK": [0] * CORES, "IRQ_POLL": [0] * CORES, "TASKLET": [5] * CORES,
            "SCHED": [100] * CORES, "HRTIMER": [0] * CORES, "RCU": [900] * CORES,
        }  # fmt: skip
        header = " " * 20 + "".join(f"CPU{cpu:<8}" for cpu in range(CORES))
        lines = [
            f"{kind:>12}:" + "".join(f" {count:>10}" for count in counts)
            for kind, counts in kinds.items()
        ]
        return "\n".join([header, *lines]) + "\n"

    def _softnet(self) -> str:
        lines = []
        for cpu in range(CORES):
            fields = [self.processed[cpu], 0, 0, *[0] * 8, self.backlog[cpu], cpu, 0, 0]
            lines.append(" ".join(f"{field:08x}" for field in fields[: self.columns]))
        return "\n".join(lines) + "\n"

    def _stat(self) -> str:
        lines = [
            f"cpu{cpu} 0 0 {self.busy[cpu]} {self.idle[cpu]} 0 0 0 0 0 0" for cpu in range(CORES)
        ]
        return "\n".join(["cpu  0 0 0 0 0 0 0 0 0 0", *lines, "intr 1 2 3"]) + "\n"

    def _file(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _link(self, name: str, target: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
