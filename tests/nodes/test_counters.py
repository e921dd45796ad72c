"""The kernel's counters of recorded nodes: memory, cores, packets, interrupts, devices."""

from __future__ import annotations

import re

import pytest
from tests.nodes.recorded import GUEST, HYBRID, WHOLE, WITH_NICS, Node

from nodescope.sources.memory_cgroups.facts import read_uptime_ns
from nodescope.sources.network.affinity import read_affinity
from nodescope.sources.network.interrupts import QueueInterrupt, assign, read_names
from nodescope.sources.network.irq_counts import EachCount, TableCounts, parse_counts
from nodescope.sources.network.nics import list_nics, read_device, read_nic
from nodescope.sources.network.softirqs import parse_softirqs
from nodescope.sources.network.softnet_stat import parse_softnet
from nodescope.sources.node.identity import read_node, read_online_cpus
from nodescope.sources.node.meminfo import read_meminfo
from nodescope.sources.node.pressure import read_pressure
from nodescope.sources.node.proc_stat import read_cores
from nodescope.sources.node.vmstat import read_vmstat

RX, TX = r"-(rx-|input\.)0$", r"-(tx-|output\.)0$"
UP = {"UP": True, "UNKNOWN": True, "DOWN": False}


@pytest.mark.parametrize("node", WHOLE, indirect=True)
def test_the_node_itself(node: Node) -> None:
    said = read_node(node.places.proc, node.places.sys)
    assert said["kernel"] == node.truth["kernel"]
    assert (said["cpus"], said["memory_bytes"]) == (node.truth["cpus"], node.truth["memory_bytes"])
    assert said["name"] == "node"  # its own is not recorded


@pytest.mark.parametrize("node", WHOLE, indirect=True)
def test_memory(node: Node) -> None:
    memory = read_meminfo(node.places.proc)
    assert memory["MemTotal"] == node.truth["memory_bytes"]
    assert 0 < memory["MemAvailable"] <= memory["MemTotal"]
    assert memory["SUnreclaim"] + memory["SReclaimable"] == memory["Slab"]
    assert memory["Percpu"] > 0
    # Both files count slab, read a moment apart.
    pages = read_vmstat(node.places.proc)["nr_slab_unreclaimable"]
    assert pages * 4096 == pytest.approx(memory["SUnreclaim"], rel=0.05)


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_kills_are_counted(node: Node) -> None:
    killed = sum(truth["oom_kills"] for truth in node.truth["usage"].values())
    counted = read_vmstat(node.places.proc)["oom_kill"]
    # The guest was booted for the recording, this machine was not.
    assert counted == killed if node.name == GUEST else counted >= killed


@pytest.mark.parametrize("node", WHOLE, indirect=True)
def test_each_core_accounts_for_the_time_since_boot(node: Node) -> None:
    cores = read_cores(node.places.proc)
    assert list(cores[:, 0]) == list(range(node.truth["cpus"]))
    uptime_s = (read_uptime_ns(node.places) or 0) / 1e9
    # Guest time is in user time already; an emulated core loses ticks.
    for ticks in cores[:, 1:9].sum(axis=1):
        assert 0.6 * uptime_s < ticks / 100 < 1.05 * uptime_s


@pytest.mark.parametrize("node", WHOLE, indirect=True)
def test_pressure_is_time_of_the_node(node: Node) -> None:
    said = read_pressure(node.places)
    assert {"cpu", "memory", "io"} <= set(said)
    uptime_us = (read_uptime_ns(node.places) or 0) / 1e3
    for resource, lost in said.items():
        assert (lost.some_us is None) == (resource == "irq")
        assert 0 <= (lost.full_us or 0) <= (lost.some_us or lost.full_us or 0) <= uptime_us
    assert (said["cpu"].some_us or 0) > 0


@pytest.mark.parametrize("node", WHOLE, indirect=True)
def test_packet_work_of_each_core(node: Node) -> None:
    cpus = list(range(node.truth["cpus"]))
    assert read_online_cpus(node.places.sys) == cpus
    softnet = parse_softnet((node.places.proc / "net/softnet_stat").read_bytes(), ())
    assert [core.cpu for core in softnet] == cpus
    softirqs = parse_softirqs((node.places.proc / "softirqs").read_bytes())
    assert list(softirqs.net_rx) == cpus
    for core in softnet:
        # A round of NET_RX takes one packet or more, unless it finds none.
        assert bool(core.processed) <= bool(softirqs.net_rx[core.cpu])
        assert core.backlog == 0
        assert softirqs.every[core.cpu] > softirqs.net_rx[core.cpu] + softirqs.net_tx[core.cpu]


@pytest.mark.parametrize("node", WITH_NICS, indirect=True)
def test_devices_are_those_with_hardware(node: Node) -> None:
    truth = {name: said for name, said in node.truth["nics"].items() if said["driver"]}
    assert list_nics(node.places.sys) == sorted(truth)
    for name, said in truth.items():
        nic = read_nic(node.places.sys, name)
        assert (nic.driver, nic.up) == (said["driver"], UP[said["state"]])
        assert nic.carrier is True
        assert (nic.rx_queues, nic.tx_queues) == (1, 1)
        assert nic.tx_timeouts == {0: 0}
        assert nic.bus is not None
        assert not nic.threaded
        for count, later in (("rx_packets", nic.rx_packets), ("tx_packets", nic.tx_packets)):
            assert 0 < (later or 0) <= said[count]  # asked of netlink after the recording


def _interrupts(node: Node) -> dict[str, list[QueueInterrupt]]:
    devices = [read_device(node.places.sys, nic) for nic in list_nics(node.places.sys)]
    assigned = assign(read_names(node.places.proc), devices)
    return {device.nic: [each for each in assigned if each.nic == device.nic] for device in devices}


@pytest.mark.parametrize("node", WITH_NICS, indirect=True)
def test_each_queue_has_its_interrupt_and_core(node: Node) -> None:
    cores = {str(cpu) for cpu in range(node.truth["cpus"])}
    for nic, interrupts in _interrupts(node).items():
        named = {each.name: (each.queue, each.direction) for each in interrupts}
        prefix = nic if node.truth["nics"][nic]["driver"] == "e1000e" else "virtio"
        receiving = [name for name in named if name.startswith(prefix) and re.search(RX, name)]
        sending = [name for name in named if name.startswith(prefix) and re.search(TX, name)]
        assert [named[name] for name in (*receiving, *sending)] == [(0, "rx"), (0, "tx")]
        for each in interrupts:
            assert read_affinity(node.places.proc, each.irq).effective in cores


@pytest.mark.parametrize("node", [HYBRID, GUEST], indirect=True)
def test_the_control_interrupt_brings_no_packets(node: Node) -> None:
    for nic, interrupts in _interrupts(node).items():
        control = [each for each in interrupts if each.name == nic or "config" in each.name]
        assert [each.queue for each in control] == [None], nic


@pytest.mark.parametrize("node", WITH_NICS, indirect=True)
def test_both_ways_of_counting_interrupts_agree(node: Node) -> None:
    irqs = [each.irq for found in _interrupts(node).values() for each in found]
    each, table = EachCount(node.places.sys, irqs), TableCounts(node.places.proc, irqs)
    try:
        one, other = each.read(), table.read()
        assert set(one) == set(other) == set(irqs)
        assert list(each.cpus) == list(table.cpus) == list(range(node.truth["cpus"]))
        for irq in irqs:  # a moment apart
            assert parse_counts(one[irq]) == pytest.approx(parse_counts(other[irq]), rel=0.05)
    finally:
        each.close()
        table.close()
