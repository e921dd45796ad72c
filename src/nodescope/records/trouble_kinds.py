"""Kinds of events of memory, storage, network tables, limits, accelerators, hardware, services.

Which words of a kernel log, counters and lines of services are of which kind:
`sources/kernel_log/messages` and `sources/troubles`. What explains each: docs/symptoms.md.
"""

from __future__ import annotations

from nodescope.records.event_details import KernelLineDetails
from nodescope.records.event_kind import EventKind
from nodescope.records.trouble_details import (
    CgroupLimitDetails,
    FaultDetails,
    FullTableDetails,
    GpuDetails,
    HardwareDetails,
    ReapingDetails,
    ServiceReportDetails,
    StorageDetails,
)

_HARDWARE_ENDS = "the hardware reports it, and nothing that the node records lies behind that"

TROUBLE_KINDS = (
    # memory
    EventKind("memory_pressure", "all tasks waited for memory for a fifth of a minute or more",
              FullTableDetails, serious=True, rank=62, way="cgroup"),
    EventKind("page_alloc_failed", "the kernel could not allocate pages", FaultDetails),
    EventKind("memory_poisoned", "memory is corrupt, and whoever used it was killed",
              FaultDetails, serious=True, rank=16, way="device"),
    # the kernel, and processes that crash
    EventKind("kernel_panic", "the kernel panicked",
              FaultDetails, serious=True, rank=12, way="task"),
    EventKind("kernel_oops", "the kernel met a fault of its own",
              FaultDetails, serious=True, rank=25, way="task"),
    EventKind("kernel_warning", "the kernel warns of a state it does not expect", FaultDetails),
    EventKind("process_crash", "a process crashed", FaultDetails),
    # storage
    EventKind("disk_io_error", "a request to a block device failed",
              StorageDetails, serious=True, rank=38, way="device"),
    EventKind("nvme_timeout", "an NVMe device did not answer in time",
              StorageDetails, serious=True, rank=39, way="device"),
    EventKind("fs_error", "a file system reports an error",
              StorageDetails, serious=True, rank=36, way="device"),
    EventKind("fs_warning", "a file system warns", StorageDetails),
    EventKind("fs_readonly", "a file system takes no more writes",
              StorageDetails, serious=True, rank=34, way="device"),
    EventKind("fs_full", "a file system is full",
              FullTableDetails, serious=True, rank=58, way="table"),
    EventKind("io_stalled", "requests to a block device wait, and none completes",
              StorageDetails, serious=True, rank=44, way="device"),
    EventKind("nfs_stalled", "an NFS server does not answer",
              StorageDetails, serious=True, rank=45, way="device"),
    EventKind("nfs_recovered", "an NFS server answers again", StorageDetails),
    EventKind("fuse_stalled", "a file system in user space does not answer",
              StorageDetails, serious=True, rank=46, way="device"),
    EventKind("raid_degraded", "an array lost a disk",
              StorageDetails, serious=True, rank=41, way="device"),
    EventKind("disk_failing", "a disk has sectors that it cannot read (SMART)", StorageDetails),
    EventKind("disk_slow", "kubelet reports that a disk answers slowly", ServiceReportDetails),
    # tables of the network
    EventKind("conntrack_full", "the table of tracked connections is full: packets are dropped",
              FullTableDetails, serious=True, rank=56, way="table"),
    EventKind("syn_queue_full", "a listening socket does not keep up with new connections",
              FullTableDetails),
    EventKind("tcp_memory", "TCP has no memory left",
              FullTableDetails, serious=True, rank=57, way="table"),
    EventKind("neighbour_full", "the neighbour table is full", FullTableDetails),
    EventKind("netdev_stuck", "a removed network device is still in use", KernelLineDetails),
    EventKind("rdma_errors", "an RDMA port counts errors", HardwareDetails),
    EventKind("rdma_link_down", "an RDMA port lost its link",
              HardwareDetails, serious=True, rank=31, way="device"),
    # limits
    EventKind("pids_limit", "a cgroup has as many tasks as it may: forks fail",
              CgroupLimitDetails, serious=True, rank=52, way="cgroup"),
    EventKind("pid_exhausted", "the node has as many tasks as it may: forks fail",
              FullTableDetails, serious=True, rank=53, way="table"),
    EventKind("process_zombies", "ended processes are not reaped by their parent", ReapingDetails),
    EventKind("files_exhausted", "the node has as many files open as it may",
              FullTableDetails, serious=True, rank=54, way="table"),
    EventKind("ports_exhausted", "no local port is left for new connections",
              FullTableDetails, serious=True, rank=55, way="table"),
    # accelerators
    EventKind("gpu_app_fault", "a program made an error on a GPU", GpuDetails),
    EventKind("gpu_ecc", "a GPU's memory had an error that could not be corrected",
              GpuDetails, serious=True, rank=19, way="device"),
    EventKind("gpu_memory_retired", "a GPU retires memory", GpuDetails),
    EventKind("gpu_nvlink", "a link between GPUs had an error",
              GpuDetails, serious=True, rank=21, way="device"),
    EventKind("gpu_lost", "a GPU fell off the bus",
              GpuDetails, serious=True, rank=17, way="device"),
    EventKind("gpu_hung", "a GPU hangs", GpuDetails, serious=True, rank=18, way="device"),
    EventKind("gpu_action", "a GPU's driver asks for a reset or a reboot",
              GpuDetails, serious=True, rank=23, way="device"),
    EventKind("gpu_error", "a GPU's driver reports another error", GpuDetails),
    EventKind("nvswitch_error", "a switch between GPUs had an error",
              GpuDetails, serious=True, rank=22, way="device"),
    # hardware
    EventKind("mce", "a machine check: an error that was not corrected",
              HardwareDetails, serious=True, rank=26, ends=_HARDWARE_ENDS),
    EventKind("mce_corrected", "a machine check: an error that was corrected", HardwareDetails),
    EventKind("edac_ue", "memory had an error that could not be corrected",
              HardwareDetails, serious=True, rank=27, ends=_HARDWARE_ENDS),
    EventKind("edac_ce", "memory had an error that was corrected", HardwareDetails),
    EventKind("hw_error", "the firmware reports an error of the hardware",
              HardwareDetails, serious=True, rank=28, ends=_HARDWARE_ENDS),
    EventKind("hw_corrected", "the firmware reports an error that was corrected",
              HardwareDetails),
    EventKind("pcie_error", "a PCIe device had an error that was not corrected",
              HardwareDetails, serious=True, rank=29, way="device"),
    EventKind("pcie_corrected", "a PCIe device had an error that was corrected", HardwareDetails),
    EventKind("cpu_hot", "a core is too hot, and was slowed down", HardwareDetails),
    # kubelet, runtimes, time
    EventKind("kubelet_unhealthy", "kubelet reports that it does not keep up",
              ServiceReportDetails, serious=True, rank=35, way="service"),
    EventKind("eviction", "kubelet evicts pods, for want of a resource",
              ServiceReportDetails, serious=True, rank=33, way="service"),
    EventKind("service_limit", "a service logs that it has no open files, watches or tasks left",
              ServiceReportDetails, serious=True, rank=59, way="service"),
    EventKind("runtime_failing", "a container runtime could not do what it was asked",
              ServiceReportDetails),
    EventKind("probe_failing", "a probe of a container fails", ServiceReportDetails),
    EventKind("clock_unsynchronized", "the clock is not synchronised", ServiceReportDetails),
    EventKind("clocksource_unstable", "the kernel gave up its clock source",
              HardwareDetails, serious=True, rank=97,
              ends="the kernel reports it; a paused virtual machine is the usual reason"),
)  # fmt: skip
