"""Which interrupt serves which queue, and how often each core was asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.network.synthetic_ena import BUS, CORES, FIRST_IRQ, QUEUES, SyntheticHost

from nodescope.errors import MalformedSource
from nodescope.sources.network.affinity import Affinity, read_affinity
from nodescope.sources.network.interrupts import (
    Device,
    QueueInterrupt,
    assign,
    parse_names,
    parse_queue,
    read_names,
)
from nodescope.sources.network.irq_counts import (
    CountReader,
    EachCount,
    TableCounts,
    open_counts,
    parse_counts,
)
from nodescope.sources.network.nics import read_device, read_nic


@pytest.mark.parametrize(
    ("name", "queue", "direction"),
    [
        ("eth0-Tx-Rx-5", 5, "rx+tx"),  # ENA
        ("i40e-ens5-TxRx-31", 31, "rx+tx"),
        ("ice-ens801f0-TxRx-7", 7, "rx+tx"),
        ("eth0-TxRx-2", 2, "rx+tx"),  # bnxt, ixgbe
        ("eth0-rx-2", 2, "rx"),
        ("eth0-tx-0", 0, "tx"),
        ("mlx5_comp3@pci:0000:00:05.0", 3, "rx+tx"),
        ("gve-ntfy-blk7@pci:0000:00:04.0", 7, None),
        ("virtio2-input.0", 0, "rx"),
        ("virtio2-output.3", 3, "tx"),
        ("eth0-q3-rx", 3, "rx"),  # Xen
        ("eth0-rxtx-4", 4, "rx+tx"),  # vmxnet3
        ("virtio2-config", None, None),
        ("ena-mgmnt@pci:0000:20:03.0", None, None),
        ("mlx5_async0@pci:0000:00:05.0", None, None),
        ("ice-ens801f0-misc", None, None),
        ("nvme0q17", None, None),
    ],
)
def test_a_drivers_name_gives_queue_and_direction(
    name: str, queue: int | None, direction: str | None
) -> None:
    assert parse_queue(name) == (queue, direction)


def test_a_device_that_was_renamed_is_known_by_its_own_list(tmp_path: Path) -> None:
    SyntheticHost(tmp_path)
    device = read_device(tmp_path / "sys", "ens5")
    assert device.bus == BUS
    found = assign(read_names(tmp_path / "proc"), [device])
    assert len(found) == QUEUES + 1
    assert {each.nic for each in found} == {"ens5"}
    assert [each.queue for each in found] == [None, *range(QUEUES)]
    assert all(each.direction == "rx+tx" and each.receives for each in found[1:])


def test_the_number_in_an_interfaces_name_is_no_queue() -> None:
    names = {9: "enp3s0", 10: "eth1-TxRx-0", 11: "i8042", 12: "eth1-misc"}
    devices = [Device("enp3s0"), Device("eth1")]
    assert assign(names, devices) == [
        QueueInterrupt(9, "enp3s0", "enp3s0", 0, "rx+tx"),
        QueueInterrupt(10, "eth1-TxRx-0", "eth1", 0, "rx+tx"),
        QueueInterrupt(12, "eth1-misc", "eth1", None, None),
    ]


def test_names_of_an_interrupt_nobody_asked_for_and_of_arm() -> None:
    content = (
        b"           CPU0       CPU1\n"
        b"  4:          1          2     GICv3  27 Level     arch_timer\n"
        b" 41:          0          9   ITS-MSI 524289 Edge      eth0-Tx-Rx-0\n"
        b" 42:          0          0\n"
        b"IPI0:        4          5       Rescheduling interrupts\n"
    )
    assert parse_names(content) == {4: "arch_timer", 41: "eth0-Tx-Rx-0"}
    with pytest.raises(MalformedSource):
        parse_names(b"no cores here\n")


def _counts(reader: CountReader) -> dict[int, list[int]]:
    try:
        return {irq: parse_counts(text) for irq, text in reader.read().items()}
    finally:
        reader.close()


def test_both_ways_of_counting_agree(tmp_path: Path) -> None:
    host = SyntheticHost(tmp_path)
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    assert isinstance(open_counts(proc, sys, host.irqs), EachCount)
    assert _counts(EachCount(sys, host.irqs)) == _counts(TableCounts(proc, host.irqs)) == host.irqs


def test_the_large_table_is_read_where_there_is_nothing_better(tmp_path: Path) -> None:
    host = SyntheticHost(tmp_path, per_irq=False)
    reader = open_counts(tmp_path / "proc", tmp_path / "sys", host.irqs)
    assert isinstance(reader, TableCounts)
    assert parse_counts(reader.read()[FIRST_IRQ + 6])[15] == 10_000
    assert reader.cpus == list(range(CORES))
    # A line moves when one before it goes away, or a core does.
    table = tmp_path / "proc/interrupts"
    lines = table.read_text().splitlines()
    del lines[1]
    lines[5] = lines[5].replace("10000", "10001")
    table.write_text("\n".join(lines) + "\n")
    after = {irq: parse_counts(text) for irq, text in reader.read().items()}
    changed = [irq for irq in host.irqs if after[irq] != host.irqs[irq]]
    assert changed == [FIRST_IRQ + 5]
    table.write_text("      CPU0 CPU7\n 101:   5   6  PCI-MSI 1-edge eth0-Tx-Rx-0\n")
    assert {irq: parse_counts(text) for irq, text in reader.read().items()} == {101: [5, 6]}
    assert reader.cpus == [0, 7]
    reader.close()


def test_a_device_that_went_away_has_nothing_but_its_name(tmp_path: Path) -> None:
    SyntheticHost(tmp_path)
    nic = read_nic(tmp_path / "sys", "eth9")
    assert (nic.nic, nic.driver, nic.up, nic.rx_packets, nic.tx_timeouts) == (
        "eth9",
        None,
        None,
        None,
        {},
    )
    assert read_affinity(tmp_path / "proc", 4711) == Affinity(None, None)
