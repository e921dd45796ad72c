"""The details of trouble with memory, storage, limits, hardware, accelerators and services."""

from __future__ import annotations

from typing import Annotated

from nodescope.records.details import Details, detail
from nodescope.records.event_details import CounterDetails


class FaultDetails(CounterDetails):
    """A fault of the kernel or of a process: where the program stood."""

    comm: Annotated[str | None, detail("name of the task")] = None
    pid: Annotated[int | None, detail("id of the task")] = None
    reason: Annotated[str | None, detail("the fault, in the kernel's words")] = None
    function: Annotated[str | None, detail("function that it happened in")] = None
    module: Annotated[str | None, detail("kernel module or library of that function")] = None
    order: Annotated[int | None, detail("pages asked for, as a power of two")] = None


class CgroupLimitDetails(CounterDetails):
    """A cgroup that reached a limit."""

    cgroup: Annotated[str | None, detail("path of the cgroup")] = None
    limit: Annotated[int | None, detail("the limit")] = None


class StorageDetails(CounterDetails):
    """Trouble of a block device, or of a file system on it."""

    device: Annotated[str | None, detail("name of the device")] = None
    mount: Annotated[str | None, detail("where the file system is mounted")] = None
    file_system: Annotated[str | None, detail("type of the file system")] = None
    operation: Annotated[str | None, detail("what was tried: `READ`, `WRITE`, …")] = None
    error: Annotated[str | None, detail("the error, in the kernel's words")] = None
    sector: Annotated[int | None, detail("first sector")] = None
    function: Annotated[str | None, detail("function of the kernel that reports it")] = None
    comm: Annotated[str | None, detail("name of the task that met the error")] = None
    server: Annotated[str | None, detail("server of a network file system")] = None
    waiting: Annotated[int | None, detail("requests that wait")] = None
    seconds: Annotated[float | None, detail("time that they have waited at least")] = None


class FullTableDetails(CounterDetails):
    """A table or quota of the kernel that is full, or nearly."""

    limit: Annotated[str | None, detail("name of the limit in the table `limits`")] = None
    scope: Annotated[str | None, detail("`node`, a mount point, or a cgroup")] = None
    used: Annotated[int | None, detail("how much of it is used")] = None
    most: Annotated[int | None, detail("how much there is")] = None
    port: Annotated[int | None, detail("port of a listening socket")] = None


class HardwareDetails(CounterDetails):
    """An error that the hardware reports."""

    device: Annotated[str | None, detail("the device, on its bus or by its label")] = None
    severity: Annotated[str | None, detail("severity, in the hardware's words")] = None
    bank: Annotated[int | None, detail("bank of the machine check")] = None
    status: Annotated[str | None, detail("status of the machine check")] = None
    errors: Annotated[int | None, detail("number of errors reported at once")] = None
    corrected: Annotated[bool | None, detail("the hardware corrected it")] = None


class GpuDetails(CounterDetails):
    """An error of an accelerator."""

    device: Annotated[str | None, detail("address of the device on its bus")] = None
    xid: Annotated[int | None, detail("number of NVIDIA's error (Xid, or SXid of a switch)")] = None
    previous_xid: Annotated[int | None, detail("Xid that the driver names as the cause")] = None
    pid: Annotated[int | None, detail("id of the process that used the device")] = None
    comm: Annotated[str | None, detail("name of that process")] = None
    link: Annotated[int | None, detail("link between devices")] = None
    fatal: Annotated[bool | None, detail("the error is fatal to the link")] = None
    action: Annotated[str | None, detail("what the driver asks for")] = None


class ServiceReportDetails(Details):
    """What kubelet, a container runtime or the time service reports of itself."""

    unit: Annotated[str | None, detail("unit that wrote the line")] = None
    reason: Annotated[str | None, detail("the reason, in its words")] = None
    resource: Annotated[str | None, detail("resource that is short")] = None
    pod: Annotated[str | None, detail("pod that it is about")] = None
    took_s: Annotated[float | None, detail("time that it took")] = None
    times: Annotated[int | None, detail("lines of that kind in the minute, if several")] = None


class ReapingDetails(Details):
    """Ended processes that their parent does not reap."""

    parent: Annotated[str | None, detail("name of the parent")] = None
    pid: Annotated[int | None, detail("id of the parent")] = None
    count: Annotated[int | None, detail("number of ended processes")] = None
    cgroup: Annotated[str | None, detail("cgroup of the parent")] = None
