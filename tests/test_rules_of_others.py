"""Every rule of node-problem-detector and of the EKS agent that reads a log, on lines of ours.

Read in node-problem-detector's `config/*.json` (2026-08) and in the monitors of the EKS node
monitoring agent (2026-08). The lines are written in the formats that those rules expect; each must
make an event here, of a kind that docs/symptoms.md names for the problem.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nodescope.ingest.kernel_events import KernelEvents, KernelLine
from nodescope.ingest.service_events import ServiceEvents
from nodescope.ingest.unit_events import UnitEvents
from nodescope.records.event import Event
from nodescope.sources.systemd.unit_texts import parse_unit_text

KERNEL, SYSTEMD = "kernel", "systemd"
_OTHERS = Path("docs/symptoms.md").read_text().split("## Every kind")[0]
_IO = "lost async page write"
# Whose rule, the problem, who writes the line, the line, the kind of the event.
LINES = [
    ("NPD", "OOMKilling", KERNEL, ("Killed process 4711 (indexer) total-vm:912000kB, "
     "anon-rss:480000kB, file-rss:120kB, shmem-rss:0kB"), "oom_kill"),
    ("NPD", "TaskHung", KERNEL, "INFO: task indexer:4711 blocked for more than 120 seconds.",
     "hung_task"),
    ("NPD", "DockerHung", KERNEL, "INFO: task docker:812 blocked for more than 300 seconds.",
     "hung_task"),
    ("NPD", "UnregisterNetDevice", KERNEL,
     "unregister_netdevice: waiting for lo to become free. Usage count = 2", "netdev_stuck"),
    ("NPD", "KernelOops", KERNEL,
     "BUG: unable to handle kernel NULL pointer dereference at 0000000000000010", "kernel_oops"),
    ("NPD", "KernelOops", KERNEL, "divide error: 0000 [#1] SMP", "kernel_oops"),
    ("NPD", "Ext4Error", KERNEL, ("EXT4-fs error (device sdb1): ext4_lookup:1604: inode #12: comm "
     "ls: deleted inode referenced: 77"), "fs_error"),
    ("NPD", "Ext4Warning", KERNEL, ("EXT4-fs warning (device sdb1): ext4_end_bio:346: I/O error 10 "
     "writing to inode 5 starting block 8)"), "fs_warning"),
    ("NPD", "IOError", KERNEL, f"Buffer I/O error on dev sdb1, logical block 7, {_IO}",
     "disk_io_error"),
    ("NPD", "XfsHasShutdown", KERNEL,
     "XFS (sdb1): Corruption of in-memory data detected. Shutting down filesystem", "fs_readonly"),
    ("NPD", "MemoryReadError", KERNEL, ("EDAC MC0: 1 CE memory read error on "
     "CPU_SrcID#0_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1 offset:0x0)"), "edac_ce"),
    ("NPD", "CperHardwareErrorCorrected", KERNEL,
     "{1}[Hardware Error]: event severity: corrected", "hw_corrected"),
    ("NPD", "CperHardwareErrorRecoverable", KERNEL,
     "{2}[Hardware Error]: event severity: recoverable", "hw_error"),
    ("NPD", "CperHardwareErrorFatal", KERNEL, "{3}[Hardware Error]: event severity: fatal",
     "hw_error"),
    ("NPD", "ReadonlyFilesystem", KERNEL, "EXT4-fs (sdb1): Remounting filesystem read-only",
     "fs_readonly"),
    ("NPD", "CorruptDockerImage", "dockerd", ("Error trying v2 registry: failed to register layer: "
     "rename /var/lib/docker/image/overlay2/a /var/lib/docker/image/overlay2/b: directory not "
     "empty"), "runtime_failing"),
    ("NPD", "CorruptDockerOverlay2", "dockerd",
     "Handler for GET returned error: readlink /var/lib/docker/overlay2/l/X: invalid argument",
     "runtime_failing"),
    ("NPD", "DockerContainerStartupFailure", "dockerd",
     "OCI runtime start failed: container process is already dead: unknown", "runtime_failing"),
    ("NPD", "KubeletStart", SYSTEMD, "Started kubelet.service - Kubernetes kubelet.",
     "unit_started"),
    ("NPD", "DockerStart", SYSTEMD, ("Starting docker.service - Docker Application Container "
     "Engine..."), "unit_started"),
    ("NPD", "ContainerdStart", SYSTEMD, ("Starting containerd.service - containerd container "
     "runtime..."), "unit_started"),
    ("NPD", "CCPPCrash", "abrt-notification", "Process 4711 (indexer) crashed in walk()",
     "process_crash"),
    ("NPD", "UncaughtException", "abrt-notification",
     "Process 4711 (indexer) of user 1000 encountered an uncaught KeyError exception",
     "process_crash"),
    ("NPD", "XorgCrash", "abrt-notification", "Display server Xorg crash in dixFreeRegistry",
     "process_crash"),
    ("NPD", "VMcore", "abrt-notification", "System encountered a fatal error in ??",
     "kernel_panic"),
    ("NPD", "KernelOops", "abrt-notification", "System encountered a non-fatal error in ??",
     "kernel_oops"),
    ("NPD", "DiskBadBlock", "smartd",
     "Device: /dev/sdc [SAT], 240 Currently unreadable (pending) sectors", "disk_failing"),
    ("EKS", "SoftLockup", KERNEL,
     "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [indexer:4711]", "soft_lockup"),
    ("EKS", "KernelBug", KERNEL, "BUG: stack guard page was hit at 00000000deadbeef",
     "kernel_warning"),
    ("EKS", "KernelBug", KERNEL, "BUG: Bad page state in process indexer  pfn:12ab", "kernel_oops"),
    ("EKS", "AppCrash", KERNEL, ("indexer[4711]: segfault at 0 ip 00007f12 sp 00007ffd error 4 in "
     "libz.so.1[7f10+9000]"), "process_crash"),
    ("EKS", "AppCrash", KERNEL, ("traps: indexer[4711] trap divide error ip:55 sp:7f error:0 in "
     "indexer[55+1000]"), "process_crash"),
    ("EKS", "AppBlocked", KERNEL, "INFO: task indexer:4711 blocked for more than 120 seconds.",
     "hung_task"),
    ("EKS", "ConntrackExceededKernel", KERNEL, "nf_conntrack: table full, dropping packet",
     "conntrack_full"),
    ("EKS", "ConntrackExceededKernel", KERNEL, "ip_conntrack: table full, dropping packet",
     "conntrack_full"),
    ("EKS", "ForkFailedOutOfPIDs", "kubelet",
     "fork/exec /usr/bin/nsenter: resource temporarily unavailable", "service_limit"),
    ("EKS", "ForkFailedOutOfPIDs", "kubelet",
     "runtime: failed to create new OS thread (have 12 already; errno=11)", "service_limit"),
    ("EKS", "KubeletFailed", SYSTEMD, "Unit kubelet.service entered failed state.", "unit_failed"),
    ("EKS", "ServiceFailedToStart", SYSTEMD, "Failed to start a.service - The A.",
     "unit_start_failed"),
    ("EKS", "ContainerRuntimeFailed", "kubelet",
     'err="OCI runtime create failed: runc create failed: no such file"', "runtime_failing"),
    ("EKS", "PodStuckTerminating", "kubelet", ('"Pod still has one or more containers in the '
     'non-exited state and will not be removed from desired state" pod="web/api-0"'),
     "runtime_failing"),
    ("EKS", "ReadinessProbeFailures", "kubelet",
     'Readiness probe for "api-0_web(12ab):api" failed (failure): HTTP 503', "probe_failing"),
    ("EKS", "LivenessProbeFailures", "kubelet",
     'Liveness probe for "api-0_web(12ab):api" failed (failure): timeout', "probe_failing"),
    ("EKS", "EtcHostsMountFailed", "kubelet", ('error mounting "/var/lib/kubelet/pods/1/etc-hosts" '
     'to rootfs at "/etc/hosts": not a directory'), "runtime_failing"),
    ("EKS", "KubeletDiskUsageSlow", "kubelet",
     "fs: disk usage and inodes count on following dirs took 2.1s: [/x]", "disk_slow"),
    ("EKS", "BlockDeviceIOError", KERNEL, "end_request: I/O error, dev sdb, sector 52428288",
     "disk_io_error"),
    ("EKS", "BlockDeviceIOError", KERNEL, "Buffer I/O error on device md0, logical block 20971",
     "disk_io_error"),
    ("EKS", "BlockDeviceIOError", KERNEL,
     "blk_update_request: I/O error, dev nvme1n1, sector 12345", "disk_io_error"),
    ("EKS", "NeuronSRAMUncorrectableError", KERNEL,
     "neuron: nd0 NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance", "gpu_ecc"),
    ("EKS", "NeuronNCUncorrectableError", KERNEL,
     "neuron: nd0 NEURON_HW_ERR=NC_UNCORRECTABLE_ERROR instance", "gpu_ecc"),
    ("EKS", "NeuronHBMUncorrectableError", KERNEL,
     "neuron: nd0 NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance", "gpu_ecc"),
    ("EKS", "NeuronDMAError", KERNEL, "neuron: nd0 NEURON_HW_ERR=DMA_ERROR instance", "gpu_hung"),
    ("EKS", "NvidiaNCCLError", KERNEL, ("trainer[99]: segfault at 7f00 ip 00007f7c sp 00007f7d "
     "error 4 in libnccl.so.2[7f7c00+d3d3000]"), "process_crash"),
]  # fmt: skip


def events_of(who: str, line: str) -> list[Event]:
    """Return the events that a line makes, read as its writer's lines are."""
    events: list[Event] = []
    if who == KERNEL:
        KernelEvents().add(events, KernelLine(1, line, 1))
    elif who == SYSTEMD:
        events = UnitEvents().take(1000, parse_unit_text(line))
    else:
        events = ServiceEvents().take(1, who, line) or []
    return events


@pytest.mark.parametrize(
    ("whose", "problem", "who", "line", "kind"), LINES, ids=[f"{x[0]}-{x[1]}" for x in LINES]
)
def test_a_line_of_their_rule_is_an_event_here(
    whose: str, problem: str, who: str, line: str, kind: str
) -> None:
    assert [event.kind for event in events_of(who, line)] == [kind]
    rows = [
        row for row in _OTHERS.splitlines()
        if row.startswith(f"| {whose} |") and re.search(rf"\b{problem}\b", row.split("|")[2])
    ]  # fmt: skip
    assert any(f"`{kind}`" in row.split("|")[3] for row in rows), problem
